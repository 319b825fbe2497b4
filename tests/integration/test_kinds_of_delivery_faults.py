"""Kinds of faults that queues, duplicates and databases of comparable systems were reported for."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from memoryos_pipeline import pipeline
from memoryos_pipeline.domain.knowledge import Candidate, Distillate, Neighbour, Verdict
from memoryos_pipeline.domain.pages import PageText
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Journal
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.sweeps import run_slot
from tests.builders import create_scope, rows
from tests.conftest import Stack
from tests.integration.stages.cold import Cold, ScriptedModel
from workers import envelope, runtime
from workers.celery_app import GRACE_SECONDS, broker_options
from workers.runtime import LeaseKeeper, Runtime

SESSIONS = 20
LIVE = """
    select k.content, count(distinct s.conversation_id) from memoryos.knowledge k
      join memoryos.knowledge_source s using (tenant_id, knowledge_id) where k.status = 'active' group by k.content
"""
WORK = "select state, attempts, last_error_class from memoryos.work order by subject_key"
WAIT_SECONDS = 20.0


@pytest.fixture
def process(stack: Stack) -> Iterator[Runtime]:
    """The runtime of a worker process over the test's database."""
    keeper = LeaseKeeper(stack.ledger, stack.ledger_database, process="worker@test", lease_seconds=60)
    embedder = HashingEmbedder()
    parts = Parts(stack.app, embedder, ExtractiveModel(embedder))
    runtime._runtime[:] = [Runtime(os.getpid(), "test", Settings(), parts, stack.ledger, stack.ledger_database, keeper)]
    with capture_logs():
        yield runtime._runtime[0]
    keeper.stop()
    runtime.forget_runtime()


def _owe(stack: Stack, *subjects: str) -> list[int]:
    scope = create_scope(stack)
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(WorkKind.DISTILL, subject, scope) for subject in subjects])
        return list(connection.execute(text("select work_id from memoryos.work order by subject_key")).scalars())


def _finish(parts: Parts, lease: Lease) -> None:
    with parts.database.transaction(lease.tenant_id) as connection:
        complete(connection, lease)


@dataclass
class SlowModel(ScriptedModel):
    """Thinks until everybody thinks, and says what is in use of the pool meanwhile."""

    together: threading.Barrier | None = None
    meanwhile: Callable[[], object] = lambda: None
    seen: list[object] = field(default_factory=list)

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:
        """Find what the scripted model finds, at the same moment as the others."""
        self.seen.append(self.meanwhile())
        if self.together:
            self.together.wait(WAIT_SECONDS)
        return super().distill(page, journal=journal)

    def resolve(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Neighbour]], *, journal: Journal
    ) -> list[Verdict]:
        """Decide what the scripted model decides."""
        self.seen.append(self.meanwhile())
        return super().resolve(candidates, neighbours, journal=journal)


class TestDuplicates:
    def test_one_fact_of_many_sessions_is_one_memory(self, stack: Stack) -> None:
        """Told in twenty sessions and thought about at once by four workers: one live row with twenty sources."""
        cold = Cold(stack)
        cold.model = SlowModel(together=threading.Barrier(4))
        cold.parts = Parts(stack.app, HashingEmbedder(), cold.model)
        for session in range(SESSIONS):
            cold.page("home=Osaka", day=session, conversation=f"session-{session}")
        distills = cold.claim(WorkKind.DISTILL)
        with ThreadPoolExecutor(4) as workers:
            list(workers.map(lambda lease: pipeline.STAGES[WorkKind.DISTILL](cold.parts, lease), distills))
        cold.work()

        assert rows(stack, LIVE) == [("Maya: the home is Osaka", SESSIONS)]

    def test_a_second_doorbell_finds_a_live_lease(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same message again while the first still runs: it ends at once, without a call and without a write."""
        began, may_end, runs = threading.Event(), threading.Event(), []

        def slow(parts: Parts, lease: Lease) -> None:
            runs.append(lease.fence)
            began.set()
            assert may_end.wait(WAIT_SECONDS)
            _finish(parts, lease)

        monkeypatch.setitem(pipeline.STAGES, "distill", slow)
        ids = _owe(stack, "page")
        with ThreadPoolExecutor(1) as other:
            first = other.submit(envelope.deliver, ids)
            assert began.wait(WAIT_SECONDS)
            envelope.deliver(ids)
            assert rows(stack, WORK) == [("leased", 1, None)]
            may_end.set()
            first.result(WAIT_SECONDS)

        assert runs == [1]
        assert rows(stack, WORK) == [("done", 1, None)]

    def test_thirty_rings_of_one_slot_are_one_sweep(self, stack: Stack) -> None:
        """Whoever comes second in a slot ends at once."""
        with ThreadPoolExecutor(4) as beats:
            ran = list(beats.map(lambda _: run_slot(stack.ledger_database, "heat", period_seconds=1e9), range(30)))

        assert [owed for owed in ran if owed is not None] == [0]


class TestLimits:
    def test_they_are_ordered(self) -> None:
        """A call ends before its lease, a lease before a stage is hung, and both before the broker hands out again."""
        settings = Settings()
        visible_again = broker_options(settings)["visibility_timeout"]

        assert settings.model_deadline_seconds < settings.lease_seconds <= settings.stage_seconds
        assert isinstance(visible_again, float)
        assert visible_again >= 2 * (settings.lease_seconds + GRACE_SECONDS)


class TestDatabase:
    def test_a_broken_transaction_breaks_no_other(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A key violation and a backend that is ended cost their own row a try; the same process does the next ones."""

        def stage(parts: Parts, lease: Lease) -> None:
            with parts.database.transaction(lease.tenant_id) as connection:
                if lease.subject_key == "1 violates" and lease.attempts == 1:
                    connection.execute(text("insert into memoryos.tenant select * from memoryos.tenant"))
                if lease.subject_key == "2 is ended" and lease.attempts == 1:
                    pid = connection.execute(text("select pg_backend_pid()")).scalar_one()
                    _end_backend(stack, pid)
                    read_now(connection)
                complete(connection, lease)

        monkeypatch.setitem(pipeline.STAGES, "distill", stage)
        envelope.deliver(_owe(stack, "1 violates", "2 is ended", "3 is fine"))

        first, second, third = rows(stack, WORK)
        assert first == ("ready", 1, "transient")
        assert second[0] == "ready"
        assert third == ("done", 1, None)

    def test_nothing_is_in_a_transaction_while_a_model_thinks(self, stack: Stack) -> None:
        """Distilling and merging hold neither a connection nor a transaction during a call."""
        cold = Cold(stack)
        pool = stack.app.engine.pool
        cold.model = SlowModel(meanwhile=pool.checkedout)  # type: ignore[attr-defined]
        cold.parts = Parts(stack.app, HashingEmbedder(), cold.model)
        cold.page("home=Osaka")
        cold.page("home=Kobe", day=1)
        cold.work()

        assert len(cold.model.seen) >= 3
        assert set(cold.model.seen) == {0}

    def test_a_child_shares_no_connection_with_its_parent(self, stack: Stack) -> None:
        """After a fork the parent's pools refuse, and a runtime of the child's own answers; the parent's still does."""
        with stack.app.transaction(stack.tenant_id) as connection:
            read_now(connection)
        told = multiprocessing.get_context("fork").SimpleQueue()
        child = multiprocessing.get_context("fork").Process(target=_use_in_child, args=(stack, told))
        child.start()
        child.join(WAIT_SECONDS)
        with stack.app.transaction(stack.tenant_id) as connection:
            read_now(connection)

        assert child.exitcode == 0
        assert told.get() == ["RuntimeError", "RuntimeError", str(stack.tenant_id)]


def _end_backend(stack: Stack, pid: int) -> None:
    with psycopg.connect(stack.url("superuser"), autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s)", [pid])


def _use_in_child(stack: Stack, told: Any) -> None:
    """Say what the parent's pools answer, and what one of the child's own does."""
    answers = []
    for inherited in (stack.app, stack.ledger_database):
        try:
            with inherited.across_tenants():
                answers.append("it answered")
        except RuntimeError as error:
            answers.append(type(error).__name__)
    own = type(stack.app)(stack.url("app"), pool_size=1)
    with own.transaction(stack.tenant_id) as connection:
        answers.append(str(connection.execute(text("select current_setting('app.tenant')")).scalar_one()))
    own.dispose()
    told.put(answers)
    os._exit(0)
