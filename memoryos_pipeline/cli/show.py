"""`memoryos show`: what a memory holds, tier by tier, and where one statement came from."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console, OverflowMethod
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.cli.standing import standing
from memoryos_pipeline.domain.paths import segment
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

Row = dict[str, Any]

COLUMNS: dict[str, Sequence[str]] = {
    "turns": ("conversation_id", "seq", "tier", "occurred_at", "speaker", "content", "turn_id"),
    "pages": ("conversation_id", "first_seq", "last_seq", "tier", "heat", "knowledge_count", "summary", "page_id"),
    "segments": ("theme", "heat", "pages", "visits", "summary", "segment_id"),
    "knowledge": ("kind", "turn_at", "weight", "version", "content", "knowledge_id"),
    "history": ("status", "kind", "turn_at", "valid_to", "version", "content", "reason", "knowledge_id"),
    "links": ("type", "weight", "source_content", "target_content", "reason"),
    "profile": ("actor", "dimension", "level", "confidence", "updated_at"),
    "rollups": ("period", "pages", "summary", "refreshed_at", "version"),
    "conversations": ("agent_id", "conversation_id", "turns", "hot_turns", "pages", "last_turn_at", "closed_at"),
    "sources": ("occurred_at", "speaker", "content", "conversation_id", "seq", "turn_id"),
    "versions": ("version", "status", "valid_from", "valid_to", "content", "reason", "knowledge_id"),
    "notes": ("version", "context", "created_at"),
    "verdicts": ("decision", "decided_by", "decided_at", "old_knowledge_id", "new_knowledge_id"),
}
"""Which columns a table shows; `--json` has all of them."""

SINGULAR = {
    "turn": "turns",
    "page": "pages",
    "segment": "segments",
    "link": "links",
    "rollup": "rollups",
    "conversation": "conversations",
}
TEXTS = frozenset({"content", "summary", "source_content", "target_content", "context"})
"""Columns a person reads; in a narrow window each is a line of its own, below what the row is."""
WIDE_COLUMNS = 110
DETAILS = {"turns": ("knowledge",), "knowledge": ("sources", "versions", "notes", "links", "verdicts")}
"""What can be shown by id, and the tables that belong to it."""


def show(  # noqa: PLR0913, PLR0917 - one option each
    what: Annotated[
        str, typer.Argument(help="turn, page, segment, knowledge, history, link, profile, rollup or conversation.")
    ],
    item_id: Annotated[str | None, typer.Argument(help="Id of one turn or one statement.")] = None,
    user_id: Annotated[str | None, typer.Option("--user", help="Of this user only.")] = None,
    agent_id: Annotated[str | None, typer.Option("--agent", help="With this agent only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Rows at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where the list before ended, as it says.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line, as the API answered.")] = False,
) -> None:
    """Show what a memory holds; with an id, one turn or statement, where it came from and what ends it."""
    listing = SINGULAR.get(what, what)
    if listing not in COLUMNS or listing in ("sources", "versions", "notes", "verdicts"):
        end_with(Console(stderr=True), f"there is nothing called {what!r} to show; try turn, page or knowledge")
    if item_id is None:
        answer = _listing(listing, {"user_id": user_id, "agent_id": agent_id, "limit": limit, "cursor": cursor})
        show_answer(answer, as_json=as_json, present=lambda console, given: _show_listing(console, listing, given))
    elif listing in DETAILS:
        answer = fetch(f"/v1/{listing}/{segment(item_id)}")
        show_answer(answer, as_json=as_json, present=lambda console, given: _show_one(console, listing, given))
    else:
        end_with(Console(stderr=True), f"a {what} cannot be shown by id; a turn or a statement can")


def fetch(path: str, params: Mapping[str, Any] | None = None) -> Row:
    """Read from the API this command finds, and end with a sentence when it refuses or is not there."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.client.http import MemoryClient  # noqa: PLC0415

    try:
        reach = find_connection(load_settings())
        with MemoryClient(reach.api_url, reach.api_key) as client:
            answer: Row = client.request("GET", path, params=dict(params or {}))
    except (NotConnectedError, MemoryClientError) as error:
        end_with(Console(stderr=True), str(error))
    return answer


def send(method: str, path: str, body: Mapping[str, Any]) -> Row:
    """Write through the API this command finds, and end with a sentence when it refuses or is not there."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.client.http import MemoryClient  # noqa: PLC0415

    try:
        reach = find_connection(load_settings())
        with MemoryClient(reach.api_url, reach.api_key) as client:
            answer: Row = client.request(method, path, json=dict(body), repeat=False)
    except (NotConnectedError, MemoryClientError) as error:
        end_with(Console(stderr=True), str(error))
    return answer


def show_answer(answer: Row, *, as_json: bool, present: Callable[[Console, Row], None]) -> None:
    """Print an answer as one JSON line, or let `present` draw it."""
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        present(Console(), answer)


def table_of(listing: str, rows: Sequence[Row]) -> Table:
    """Return a table of rows with the columns this kind of row is read by."""
    table = Table()
    for column in COLUMNS[listing]:
        # An id is there to be copied: it is broken over lines, never cut.
        overflow: OverflowMethod = "fold" if column.endswith("_id") else "ellipsis"
        table.add_column(_heading(column), overflow=overflow)
    for row in rows:
        table.add_row(*(_cell(column, row.get(column)) for column in COLUMNS[listing]))
    return table


def draw(console: Console, listing: str, rows: Sequence[Row]) -> None:
    """Print rows as a table, or row by row where a table would cut words and ids to pieces."""
    if console.width >= WIDE_COLUMNS:
        console.print(table_of(listing, rows))
        return
    for row in rows:
        told = [(column, _cell(column, row.get(column))) for column in COLUMNS[listing]]
        names = [f"{_heading(column)} {cell}" for column, cell in told if cell and column not in TEXTS]
        console.print(", ".join(names), style="dim", highlight=False)
        for text in (cell for column, cell in told if cell and column in TEXTS):
            console.print(Padding(text, (0, 0, 0, 2)), highlight=False)


def _heading(column: str) -> str:
    return column.removesuffix("_at").replace("_", " ")


def _listing(listing: str, params: Mapping[str, Any]) -> Row:
    if listing == "history":
        return fetch("/v1/knowledge", {**params, "history": "true"})
    return fetch(f"/v1/{listing}", params)


def _show_listing(console: Console, listing: str, answer: Row) -> None:
    rows = answer["knowledge" if listing == "history" else listing]
    draw(console, listing, rows)
    if not rows:
        console.print("There is nothing here yet.")
    if answer["cursor"]:
        console.print(f"Those are {len(rows)}; for more add", style="dim", end=" ")
        console.print(f"--cursor {answer['cursor']}", style="dim", soft_wrap=True, markup=False, highlight=False)


def _show_one(console: Console, listing: str, answer: Row) -> None:
    console.print(answer["content"], markup=False, highlight=False, style="bold")
    if listing == "knowledge":
        console.print(standing(answer), markup=False, highlight=False)
    draw(console, "history" if listing == "knowledge" else listing, [answer])
    for part in DETAILS[listing]:
        if answer[part]:
            console.print(f"\n{part}", style="dim")
            draw(console, "history" if part == "knowledge" else part, answer[part])


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    return escape(str(value)[:16].replace("T", " ") if column.endswith(("_at", "_to", "_from")) else str(value))
