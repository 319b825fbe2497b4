"""`memoryos ingest`: a file of turns goes in, over HTTP or the queue, at once or as it was lived."""

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.cli.readers import UnreadableFileError, read_turns
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings


class Through(StrEnum):
    """Which of the two ways in."""

    HTTP = "http"
    QUEUE = "queue"


def ingest(
    file: Annotated[Path, typer.Argument(help="Turns as JSON lines, or a LoCoMo file.")],
    timezone: Annotated[str, typer.Option(help="Where LoCoMo's session dates are local.")] = "UTC",
    as_lived: Annotated[bool, typer.Option(help="Step recorded time through the turns' own dates.")] = False,
    through: Annotated[Through, typer.Option(help="The API, or the Celery queue `ingest`.")] = Through.HTTP,
    batch: Annotated[int, typer.Option(min=1, max=1000, help="Turns in one request.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of a table.")] = False,
) -> None:
    """Record a file of turns. Running it again adds nothing: turns that are there are counted as such."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - other commands start without

    from memoryos_pipeline.cli.ingesting import Request, run_ingest  # noqa: PLC0415
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415

    console = Console(stderr=True)
    started = time.monotonic()
    try:
        turns = read_turns(file, _zone(timezone))
        settings = load_settings()
        request = Request(turns, through is Through.QUEUE, batch, as_lived)
        outcome = run_ingest(request, find_connection(settings), settings, console=console)
    except (UnreadableFileError, NotConnectedError, MemoryClientError) as error:
        end_with(console, str(error))
    except SQLAlchemyError as error:
        end_with(console, f"--as-lived needs the owner and ledger roles of the database ({type(error).__name__})")
    if not turns:
        console.print(f"There is no turn in {file}.", markup=False, highlight=False, soft_wrap=True)
    outcome = {"file": str(file), **outcome, "seconds": round(time.monotonic() - started, 2)}
    _show(outcome, as_json=as_json)
    if outcome["refused"]:
        raise typer.Exit(1)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise typer.BadParameter(
            f"{name!r} is no time zone; say e.g. UTC or Asia/Seoul", param_hint="--timezone"
        ) from None


def _show(outcome: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(outcome, ensure_ascii=False))
        return
    console = Console()
    table = Table(show_header=False, box=None, pad_edge=False)
    for name in ("turns", "recorded", "already_there", "seconds"):
        table.add_row(name.replace("_", " "), str(outcome[name]))
    for each in outcome["refused"]:
        table.add_row("refused", f"{'/'.join(each['conversation'])} {each['client_turn_id']}: {each['code']}")
    console.print(table, highlight=False)
    if outcome["clock_held_at"]:
        console.print(
            f"Recorded time is held at {outcome['clock_held_at']}; `memoryos clock --release` lets it run again."
        )
