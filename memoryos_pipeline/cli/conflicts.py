"""`memoryos conflicts`: what was decided when statements contradicted each other, and taking it back."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.show import Row, fetch, send, show_answer
from memoryos_pipeline.domain.paths import segment

app = typer.Typer(name="conflicts", help="See and undo what was decided about contradictions.", no_args_is_help=True)
VerdictId = Annotated[str, typer.Argument(help="The decision's id, as `memoryos conflicts list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback()
def _group() -> None:
    """See and undo what was decided about contradictions."""


@app.command(name="list")
def list_(
    user_id: Annotated[str | None, typer.Option("--user", help="Of this user only.")] = None,
    agent_id: Annotated[str | None, typer.Option("--agent", help="With this agent only.")] = None,
    decision: Annotated[str | None, typer.Option(help="UPDATE, CLOSE, NOOP, COEXIST or ADD only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Rows at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List decisions, the latest first."""
    asked = {"user_id": user_id, "agent_id": agent_id, "decision": decision, "limit": limit}
    answer = fetch("/v1/verdicts", {name: value for name, value in asked.items() if value is not None})
    show_answer(answer, as_json=as_json, present=_show_all)


@app.command()
def show(verdict_id: VerdictId, as_json: AsJson = False) -> None:
    """Show one decision: both statements, who decided, and by what evidence."""
    show_answer(fetch(f"/v1/verdicts/{segment(verdict_id)}"), as_json=as_json, present=_show_one)


@app.command()
def undo(verdict_id: VerdictId, as_json: AsJson = False) -> None:
    """Take a decision back: what it ended is as it was, and what was said stands beside it."""
    answer = send("POST", f"/v1/verdicts/{segment(verdict_id)}/undo", {})
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        typer.echo(f"It is undone. To bring it back: memoryos conflicts undo {answer['undone_by']}")


def _show_all(console: Console, answer: Row) -> None:
    table = Table("decided", "decision", "before", "now", "why")
    table.add_column("verdict", overflow="fold")
    for row in answer["verdicts"]:
        decision = f"{row['decision']}{' (undone)' if row['undone_at'] else ''}"
        texts = (row["old_content"] or "", row["new_content"], row["reason"])
        table.add_row(row["decided_at"][:16].replace("T", " "), decision, *map(escape, texts), row["verdict_id"])
    console.print(table if answer["verdicts"] else "Nothing was decided yet.")


def _show_one(console: Console, answer: Row) -> None:
    for name in ("decision", "old_content", "new_content", "reason", "decided_by", "decided_at", "undone_at", "undoes"):
        if answer[name]:
            console.print(f"{name.replace('_', ' ')}: {answer[name]}", markup=False, highlight=False)
    console.print(f"evidence: {json.dumps(answer['evidence'], ensure_ascii=False)}", markup=False, highlight=False)
    if answer["can_be_undone"]:
        console.print(f"to take it back: memoryos conflicts undo {answer['verdict_id']}", style="dim")
