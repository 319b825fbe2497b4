"""What `memoryos eval recall` does to a system before it asks: turns in, tiers moved, everything drained."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memoryos_pipeline.cli.clock import ForwardClock
from memoryos_pipeline.client.errors import NotDrainedError
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.client.outbox import Conversation
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.sweeps import owe_due, owe_tails

BATCH = 200
LOOK_SECONDS = 2.0
DRAIN_SECONDS = 7_200.0
COLD_AFTER = timedelta(days=30)
"""More than a page takes to cool, and less than unimportant knowledge takes to be forgotten."""

TurnBody = dict[str, Any]


@dataclass(frozen=True, slots=True)
class System:
    """How the system that is measured is reached."""

    api_url: str
    api_key: str
    owner_url: str
    ledger_url: str


def ingest(client: MemoryClient, turns: Sequence[TurnBody], console: Console) -> None:
    """Record the turns; those that are there already change nothing."""
    with bar(console, "turns", total=len(turns)) as advanced:
        for start in range(0, len(turns), BATCH):
            advanced(len(client.add_turns(turns[start : start + BATCH])))


def move(client: MemoryClient, system: System, turns: Sequence[TurnBody], *, console: Console, cold: bool) -> None:
    """Seal every conversation, so that nothing is hot; with `cold` let a month pass, so that pages are archived."""
    for conversation in dict.fromkeys(Conversation(*_names(turn)) for turn in turns):
        client.close_conversation(conversation)
    if not cold:
        return
    drain(client, console)
    owner, ledger = (Database(url, pool_size=1) for url in (system.owner_url, system.ledger_url))
    try:
        clock = ForwardClock(owner)
        with owner.across_tenants() as connection:
            now = read_now(connection)
        clock.hold(now + COLD_AFTER)
        owe_due(ledger)
    finally:
        owner.dispose()
        ledger.dispose()


def index_tails(system: System) -> None:
    """Owe an index to what was said last now, instead of waiting until a sweep finds it silent for long enough."""
    ledger = Database(system.ledger_url, pool_size=1)
    try:
        owe_tails(ledger)
    finally:
        ledger.dispose()


def drain(client: MemoryClient, console: Console) -> dict[str, Any]:
    """Return the pipeline's status once nothing is owed. Raises NotDrainedError after two hours."""
    most = owed = client.status()["owed"]
    with bar(console, "work", total=most) as advanced:
        for _ in range(int(DRAIN_SECONDS / LOOK_SECONDS)):
            try:
                return client.wait(LOOK_SECONDS)
            except NotDrainedError as error:
                advanced(max(0, owed - error.owed))
                owed = error.owed
    raise NotDrainedError(owed, DRAIN_SECONDS)


@contextmanager
def bar(console: Console, name: str, *, total: int) -> Iterator[Callable[[int], object]]:
    """Show progress while the block runs; it yields what advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)
        yield lambda count: progress.advance(task, count)


def _names(turn: TurnBody) -> tuple[str, str, str]:
    return turn["user_id"], turn["agent_id"], turn["conversation_id"]
