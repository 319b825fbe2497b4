"""A demonstration from start to end: a system of its own, months of conversation, questions, what was kept."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memoryos_pipeline.cli.as_lived import Levers, Step, publish_as_lived
from memoryos_pipeline.cli.clock import ForwardClock
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.demo.journal import JournaledClient, read_journal
from memoryos_pipeline.demo.memory import PeakMemory
from memoryos_pipeline.demo.outcome import Outcome, read_outcome
from memoryos_pipeline.demo.questions import Asked, ask, baselines
from memoryos_pipeline.demo.show import show_question, show_score, show_tiers, show_urls
from memoryos_pipeline.demo.system import own_system
from memoryos_pipeline.embedded.directory import Connection
from memoryos_pipeline.embedded.first_run import TENANT_ID
from memoryos_pipeline.sample import sample_questions, sample_turns
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.sweeps import owe_due

DRAIN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What was seen: the tiers and promises kept, every question with its context, time and memory taken."""

    outcome: Outcome
    asked: list[Asked]
    seconds: float
    peak_bytes: int


def run_demo(console: Console, *, verbose: bool) -> Demonstration:
    """Run it, printing as it goes. Raises EmbeddedServerError, MemoryClientError; leaves nothing behind."""
    started = time.monotonic()
    with PeakMemory() as memory, own_system() as (connection, place):
        outcome, asked = _demonstrate(console, connection, place, verbose=verbose)
    return Demonstration(outcome, asked, time.monotonic() - started, memory.peak_bytes)


def _demonstrate(
    console: Console, connection: Connection, place: Path, *, verbose: bool
) -> tuple[Outcome, list[Asked]]:
    turns = sample_turns()
    journal = place / "journal.jsonl"
    show_urls(console, connection)
    with MemoryClient(connection.api_url, connection.api_key) as client:
        with _progress_bar(console, total=len(turns)) as advanced:
            _publish(connection, JournaledClient(client, journal), client=client, advanced=advanced)
        words = baselines(turns)
        asked = [ask(client, question, baseline=words[question["user_id"]]) for question in sample_questions()]
        client.wait(DRAIN_SECONDS)
    with closing_database(connection.database_url) as database:
        outcome = read_outcome(database, TENANT_ID, read_journal(journal))
    if verbose:
        show_tiers(console, outcome)
        for each in asked:
            show_question(console, each)
    show_score(console, asked, outcome)
    show_urls(console, connection)
    return outcome, asked


def _publish(
    connection: Connection, way: JournaledClient, *, client: MemoryClient, advanced: Callable[[Step], object]
) -> None:
    """Live the sample's months, and leave the clock where the last question is asked from."""
    with ExitStack() as stack:
        owner = stack.enter_context(closing_database(connection.owner_url))
        ledger = stack.enter_context(closing_database(connection.ledger_url))
        levers = Levers(
            clock=ForwardClock(owner).hold,
            sweep=lambda: owe_due(ledger),
            wait=lambda: client.wait(DRAIN_SECONDS),
            progress=advanced,
        )
        asked_at = max(datetime.fromisoformat(question["asked_at"]) for question in sample_questions())
        publish_as_lived(way, sample_turns(), levers=levers, until=asked_at)


@contextmanager
def closing_database(url: str) -> Iterator[Database]:
    """Connect with one connection, and close it afterwards."""
    database = Database(url, pool_size=1, application_name="memoryos-demo")
    try:
        yield database
    finally:
        database.dispose()


@contextmanager
def _progress_bar(console: Console, *, total: int) -> Iterator[Callable[[Step], object]]:
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("turns"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("living", total=total)

        def show(step: Step) -> None:
            progress.update(task, completed=step.published, description=f"{step.at:%d %b %Y}")

        yield show
