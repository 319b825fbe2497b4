"""`memoryos ingest`: a file of turns goes in, over HTTP or the queue, at once or as it was lived."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from sqlalchemy.exc import SQLAlchemyError

from memoryos_pipeline.cli.as_lived import Levers, publish_as_lived
from memoryos_pipeline.cli.clock import ForwardClock
from memoryos_pipeline.cli.connection import NotConnectedError, Reach, find_connection
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.cli.readers import UnreadableFileError, read_turns
from memoryos_pipeline.cli.ways_in import OverHttp, ThroughQueue, TurnBody, WayIn, unrecorded
from memoryos_pipeline.client.errors import MemoryClientError
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.client.outbox import SQLiteOutbox
from memoryos_pipeline.client.publisher import TurnPublisher
from memoryos_pipeline.settings import Settings, load_settings
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.sweeps import owe_due

DRAIN_SECONDS = 900.0


class Through(StrEnum):
    """Which of the two ways in."""

    HTTP = "http"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    turns: list[TurnBody]
    through: Through
    batch: int
    as_lived: bool


def ingest(
    file: Annotated[Path, typer.Argument(help="Turns as JSON lines, or a LoCoMo file.")],
    timezone: Annotated[str, typer.Option(help="Where LoCoMo's session dates are local.")] = "UTC",
    as_lived: Annotated[bool, typer.Option(help="Step recorded time through the turns' own dates.")] = False,
    through: Annotated[Through, typer.Option(help="The API, or the Celery queue `ingest`.")] = Through.HTTP,
    batch: Annotated[int, typer.Option(min=1, max=1000, help="Turns in one request.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of a table.")] = False,
) -> None:
    """Record a file of turns. Running it again adds nothing: turns that are there are counted as such."""
    console = Console(stderr=True)
    started = time.monotonic()
    try:
        turns = read_turns(file, _zone(timezone))
        settings = load_settings()
        request = Request(turns, through, batch, as_lived)
        outcome = run_ingest(request, find_connection(settings), settings, console=console)
    except (UnreadableFileError, NotConnectedError, MemoryClientError) as error:
        end_with(console, str(error))
    except SQLAlchemyError as error:
        end_with(console, f"--as-lived needs the owner and ledger roles of the database ({type(error).__name__})")
    outcome = {"file": str(file), **outcome, "seconds": round(time.monotonic() - started, 2)}
    _show(outcome, as_json=as_json)
    if outcome["refused"]:
        raise typer.Exit(1)


def run_ingest(request: Request, reach: Reach, settings: Settings, *, console: Console) -> dict[str, Any]:
    """Publish the turns of a request and return what became of them, by count."""
    with ExitStack() as stack:
        client = stack.enter_context(MemoryClient(reach.api_url, reach.api_key))
        advanced = stack.enter_context(_progress_bar(console, total=len(request.turns)))
        way = _way_in(stack, request, client, reach=reach, prefix=settings.broker_key_prefix, advanced=advanced)
        held = _live(stack, request, client, way=way, reach=reach) if request.as_lived else None
        if not request.as_lived:
            way.add_turns(request.turns)
    return {
        "turns": len(request.turns),
        "recorded": way.count.recorded,
        "already_there": len(request.turns) - way.count.recorded - len(way.count.refused),
        "refused": [
            {"conversation": list(each.conversation), "client_turn_id": each.client_turn_id, "code": each.code}
            for each in way.count.refused
        ],
        "clock_held_at": held.isoformat() if held else None,
    }


def _way_in(
    stack: ExitStack,
    request: Request,
    client: MemoryClient,
    *,
    reach: Reach,
    prefix: str,
    advanced: Callable[[int], object],
) -> WayIn:
    if request.through is Through.HTTP:
        return OverHttp(client, batch=request.batch, advanced=advanced)
    # The file itself is what a next run starts from, so this outbox need not outlive the command.
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="memoryos-outbox-"))
    outbox = SQLiteOutbox(Path(directory) / "outbox.sqlite")
    stack.callback(outbox.close)
    publisher = TurnPublisher(reach.broker_url, reach.api_url, reach.api_key, outbox, broker_key_prefix=prefix)
    stack.callback(publisher.close)
    return ThroughQueue(client, publisher, advanced=advanced)


def _live(stack: ExitStack, request: Request, client: MemoryClient, *, way: WayIn, reach: Reach) -> datetime | None:
    """Publish what is new as lived, and leave the clock held at the end; return where."""
    owner = _database(stack, reach.owner_url, "memoryos-owner")
    ledger = _database(stack, reach.ledger_url, "memoryos-ledger")
    clock = ForwardClock(owner)
    levers = Levers(clock=clock.hold, sweep=lambda: owe_due(ledger), wait=lambda: client.wait(DRAIN_SECONDS))
    publish_as_lived(way, unrecorded(client, request.turns), levers=levers)
    return clock.held_at


def _database(stack: ExitStack, url: str, name: str) -> Database:
    database = Database(url, pool_size=1, application_name=name)
    stack.callback(database.dispose)
    return database


@contextmanager
def _progress_bar(console: Console, *, total: int) -> Iterator[Callable[[int], object]]:
    columns = (TextColumn("turns"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task: TaskID = progress.add_task("turns", total=total)
        yield lambda count: progress.advance(task, count)


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
