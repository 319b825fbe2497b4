"""Rows that raise, exit, hang, or end their process, beside a tenant who has none: bounded, named, and replayable.

MEMORYOS_TEST_POISON_ROWS says how many; the figures of the healthy tenant are printed.
"""

import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.embedded.process import start_program
from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster, Ground
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import LANGUAGES, HttpWriter, conversation
from memoryos_pipeline.faults.members import Member
from memoryos_pipeline.settings import QUEUES
from memoryos_pipeline.store.dead_letters import iterate_dead, replay
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.tenants import create_tenant
from tests.faults import poisoned_worker
from tests.faults.poisoned_worker import ANTIDOTE, HARMLESS, MARK, POISONS

ROWS = int(os.environ.get("MEMORYOS_TEST_POISON_ROWS", "500"))
DEADLY_SHARE = 0.02
DEADLY = [*["segfault", "killed", "exit"] * 2, "segfault", "killed", "exit_at_once", "hang"]
"""What ends a process, or has to be ended with it. Of ten such rows one hangs: it costs the most time."""
MAX_ATTEMPTS = 3
STAGE_SECONDS = "5"
QUIET_SECONDS = max(30.0, ROWS / 50)
"""A percentile of a few rows would be their slowest, and no measure for that of many."""
PAUSE_SECONDS = 0.5
CHAPTER = 500
BATCH = 5
DRAIN_SECONDS = 400.0 + ROWS / 5
DEAD = text("""
    select split_part(w.subject_key, '!', 2), w.state, max(w.attempts), max(w.executions), min(d.error_class), count(*)
      from memoryos.work w left join memoryos.dead_letter d using (work_id)
     where w.tenant_id = :tenant_id and w.kind = 'summarize' group by 1, 2 order by 1
""")
OPEN = text("select count(*) from memoryos.work where tenant_id = :tenant_id and state in ('ready', 'leased')")
LATENCY = text("""
    select count(*), percentile_cont(0.5) within group (order by seconds),
           percentile_cont(0.99) within group (order by seconds), max(seconds),
           percentile_cont(0.99) within group (order by waited)
      from (select extract(epoch from finished_at - created_at)::float8 as seconds,
                   extract(epoch from claimed_at - created_at)::float8 as waited from memoryos.work
             where tenant_id = :tenant_id and kind = 'summarize' and state = 'done' and created_at >= :since) done
""")
NOW = text("select clock_timestamp()")
SCOPE = text("""
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    values (:tenant_id, :scope_id, :user_id, :agent_id)
""")


class PoisonedWorker(Member):
    """A worker that does to itself what poisoned rows say."""

    def start(self, **environment: str) -> Member:
        """Start it now, with these variables on top in this life only."""
        command = [sys.executable, poisoned_worker.__file__, *self.words]
        self.process = start_program(command, log=self.log, environment={**self.environment, **environment})
        self.starts, self.is_wanted = self.starts + 1, True
        return self


@dataclass(frozen=True)
class Latency:
    """How long work of the healthy tenant took, from being owed to being done."""

    rows: int
    p50_seconds: float
    p99_seconds: float
    max_seconds: float
    waited_p99_seconds: float
    """Until somebody took it."""


@pytest.fixture(scope="module")
def system(ground: Ground) -> Iterator[Cluster]:
    """An API, a relay, a worker of child processes that takes the poison, and one for the other queues."""
    with Cluster(ground) as cluster:
        cluster.add_api().start()
        cluster.add_relay().start()
        cluster.add_worker("others", queues=",".join(set(QUEUES) - {"summarize"})).start()
        hung = {"MEMORYOS_STAGE_SECONDS": STAGE_SECONDS}
        plain = cluster.add_worker("poisoned", queues="summarize", pool="prefork", concurrency=4, **hung)
        poisoned = PoisonedWorker(plain.name, plain.words, plain.log, plain.environment, plain.is_ready)
        cluster.members["poisoned"] = poisoned
        poisoned.start()
        for name in ("api", "others", "poisoned"):
            cluster.members[name].ready()
        yield cluster


@pytest.fixture(scope="module")
def poisoner(system: Cluster) -> UUID:
    """A tenant with nothing but poison."""
    tenant_id = mint_id()
    create_tenant(system.owner, tenant_id, "poisoner")
    return tenant_id


def _poison(cluster: Cluster, tenant_id: UUID, chance: random.Random) -> dict[str, int]:
    """Owe the rows, in an order of chance; return how many there are of each poison."""
    deadly = max(len(DEADLY), round(ROWS * DEADLY_SHARE))
    poisons = [DEADLY[n % len(DEADLY)] for n in range(deadly)] + [HARMLESS[n % 2] for n in range(ROWS - deadly)]
    chance.shuffle(poisons)
    scope = scope_id(tenant_id, "mallory", "companion")
    values = {"tenant_id": tenant_id, "scope_id": scope, "user_id": "mallory", "agent_id": "companion"}
    owed = [Owed(WorkKind.SUMMARIZE, f"{n}{MARK}{poison}", scope) for n, poison in enumerate(poisons)]
    with cluster.app.transaction(tenant_id) as connection:
        connection.execute(SCOPE, values)
        owe(connection, tenant_id, owed, max_attempts=MAX_ATTEMPTS)
    return {poison: poisons.count(poison) for poison in sorted(POISONS)}


def _is_over(cluster: Cluster, tenant_id: UUID) -> bool:
    with cluster.ledger.across_tenants() as connection:
        return not connection.execute(OPEN, {"tenant_id": tenant_id}).scalar_one()


@contextmanager
def _healthy_talk(cluster: Cluster, journal: ClientJournal, name: str) -> Iterator[None]:
    """Let the healthy tenant talk until the block ends."""
    over = threading.Event()

    def talk() -> None:
        with closing(HttpWriter(cluster, journal)) as writer:
            for chapter in count():
                told = [conversation(CHAPTER, user=f"{name}-{lang}-{chapter}", lang=lang) for lang in LANGUAGES]
                for start in range(0, CHAPTER, BATCH):
                    for turns in told:
                        writer.send(turns[start : start + BATCH])
                        if over.wait(PAUSE_SECONDS):
                            return

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _now(cluster: Cluster) -> datetime:
    with cluster.ledger.across_tenants() as connection:
        moment: datetime = connection.execute(NOW).scalar_one()
        return moment


def _latency(cluster: Cluster, since: datetime) -> Latency:
    with cluster.ledger.across_tenants() as connection:
        return Latency(*connection.execute(LATENCY, {"tenant_id": cluster.tenant_id, "since": since}).one())


def _ends(cluster: Cluster, tenant_id: UUID) -> list[tuple[Any, ...]]:
    """Return how rows of each poison ended: poison, state, attempts, executions, error class, how many."""
    with cluster.ledger.across_tenants() as connection:
        return [tuple(row) for row in connection.execute(DEAD, {"tenant_id": tenant_id})]


@pytest.mark.slow
class TestPoison:
    def test_it_is_given_up_and_nobody_else_notices(
        self, system: Cluster, journal: ClientJournal, poisoner: UUID, seed: int
    ) -> None:
        """Every row is buried after its tries, the healthy tenant's work goes on; a mended release does them all."""
        since = _now(system)
        with _healthy_talk(system, journal, "quiet"):
            system.wait_until(lambda: False, seconds=QUIET_SECONDS)
        system.drain(DRAIN_SECONDS)
        quiet, since = _latency(system, since), _now(system)
        with _healthy_talk(system, journal, "poisoned"):
            given = _poison(system, poisoner, random.Random(seed))
            is_over = system.wait_until(lambda: _is_over(system, poisoner), seconds=DRAIN_SECONDS)
            assert is_over, _ends(system, poisoner)
        poisoned, ends = _latency(system, since), _ends(system, poisoner)
        system.drain(DRAIN_SECONDS)
        sys.stdout.write(
            f"quiet {quiet}\npoisoned {poisoned}\n{ends}\nlives of the worker {system.members['poisoned'].starts}\n"
        )

        assert [(poison, state, rows) for poison, state, *_, rows in ends] == [
            (poison, "dead", rows) for poison, rows in given.items() if rows
        ]
        assert {attempts for _, _, attempts, *_ in ends} == {MAX_ATTEMPTS}
        assert {error_class for *_, error_class, _ in ends} <= {"transient", "lease_expired"}

        system.members["poisoned"].restart(**{ANTIDOTE: "1"})
        for dead in iterate_dead(system.ledger, tenant_id=poisoner):
            replay(system.owner, system.ledger, dead)
        assert system.wait_until(lambda: _is_over(system, poisoner), seconds=DRAIN_SECONDS)
        assert {state for _, state, *_ in _ends(system, poisoner)} == {"done"}
        assert check(system, journal.path).wrongs() == {}
