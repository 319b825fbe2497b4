"""What `memoryos ingest` does once its options are read: find the way in, publish at once or as lived, count."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from memoryos_pipeline.cli.as_lived import Levers, publish_as_lived
from memoryos_pipeline.cli.clock import ForwardClock
from memoryos_pipeline.cli.ways_in import OverHttp, ThroughQueue, TurnBody, WayIn, unrecorded
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.client.outbox import SQLiteOutbox
from memoryos_pipeline.client.publisher import TurnPublisher
from memoryos_pipeline.reach import Reach
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.sweeps import owe_due

DRAIN_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    turns: list[TurnBody]
    through_queue: bool
    batch: int
    as_lived: bool


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
    if not request.through_queue:
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
