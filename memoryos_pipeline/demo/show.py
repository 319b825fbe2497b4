"""How a demonstration looks: a table a tier, each question with its context, where to go on looking."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from memoryos_pipeline.demo.outcome import Outcome
from memoryos_pipeline.demo.questions import Asked
from memoryos_pipeline.embedded.directory import Connection

ROWS_SHOWN = 6
LINE_CHARACTERS = 76

Row = dict[str, Any]


def show_tiers(console: Console, outcome: Outcome) -> None:
    """Print what became of the turns: hot, warm and cold, with heat and weight."""
    tiers = outcome.tiers
    hot = [row for row in tiers["turns"] if row["tier"] == "hot"]
    warm = sorted(tiers["pages"], key=lambda row: -row["heat"])
    cold = sorted(tiers["knowledge"], key=lambda row: -row["weight"])
    _table(console, "Hot: turns, verbatim", hot, {"user": "user_id", "said": "occurred_at", "turn": "content"})
    columns = {"user": "user_id", "heat": "heat", "tier": "tier", "turns": "turns", "summary": "summary"}
    _table(console, "Warm: pages", warm, columns)
    columns = {"user": "user_id", "weight": "weight", "since": "valid_from", "kind": "kind", "knowledge": "content"}
    _table(console, "Cold: knowledge", cold, columns)
    segments = sorted(tiers["segments"], key=lambda row: -row["heat"])
    _table(console, "Segments", segments, {"user": "user_id", "heat": "heat", "pages": "pages", "theme": "theme"})
    columns = {"about": "actor", "dimension": "dimension", "level": "level", "confidence": "confidence"}
    _table(console, "Profile", tiers["profile"], columns)
    _table(console, "Links", tiers["links"], {"type": "type", "weight": "weight", "reason": "reason"})


def show_question(console: Console, asked: Asked) -> None:
    """Print a question, the context it was given with dates and sources, and whether that held the answer."""
    question = asked.question
    verdict = "[green]hit[/]" if asked.hit else "[red]miss[/]"
    plain = "hit" if asked.bm25_hit else "miss"
    title = f"{escape(question['question'])}  {verdict} (BM25 in the same budget: {plain})"
    lines = [f"{escape(item['line'])}{_sources(item)}" for item in asked.context["items"]]
    subtitle = f"{question['category']}, asked {question['asked_at'][:10]}, {asked.context['tokens']} tokens"
    console.print(Panel("\n".join(lines), title=title, subtitle=subtitle, title_align="left", subtitle_align="right"))


def show_score(console: Console, asked: Sequence[Asked], outcome: Outcome) -> None:
    """Print the score of all questions and every broken promise."""
    hits, by_words = sum(each.hit for each in asked), sum(each.bm25_hit for each in asked)
    console.print(f"\n{hits} of {len(asked)} questions answered in context; BM25 in the same budget: {by_words}.")
    for reason in sorted({reason for each in asked for reason in each.context["degraded"]}):
        console.print(f"[yellow]degraded[/] {escape(reason)}")
    for sentence in outcome.violations:
        console.print(f"[red]broken[/] {escape(sentence)}")
    console.print(
        f"Lost {outcome.lost}, doubled {outcome.doubled}, invariants broken {len(outcome.violations)}.",
        style="green" if outcome.is_sound else "red",
    )


def show_urls(console: Console, connection: Connection) -> None:
    """Print where to look while the demonstration runs. Its password opens nothing else."""
    login = f"(user {connection.flower_user}, password {connection.flower_password})"
    for line in (f"API docs  {connection.api_url}/docs", f"Flower    {connection.flower_url}  {login}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _table(console: Console, title: str, rows: Sequence[Row], columns: dict[str, str]) -> None:
    table = Table(title=f"{title} ({len(rows)})", title_justify="left", title_style="bold", expand=False)
    for name in columns:
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=LINE_CHARACTERS)
    for row in rows[:ROWS_SHOWN]:
        table.add_row(*(_cell(row[field]) for field in columns.values()))
    if len(rows) > ROWS_SHOWN:
        table.add_row(*["…"] * len(columns))
    console.print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    return escape(str("" if value is None else value))


def _sources(item: Row) -> str:
    names = [source["client_turn_id"] for source in item.get("source_turns", ())]
    return f" [dim]← {escape(', '.join(names))}[/]" if names else ""
