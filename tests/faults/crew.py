"""A crew of worker threads in the test's own process: the real envelope over the real stages, and no broker between."""

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from structlog.testing import capture_logs

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import LanguageModel
from memoryos_pipeline.readmodels.fault_figures import count_done
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import Ledger
from memoryos_pipeline.store.publishing import reap_expired
from tests.conftest import Stack
from workers import runtime
from workers.envelope import deliver
from workers.runtime import LeaseKeeper, Runtime

LEASE_SECONDS = 5.0
IDLE_SECONDS = 0.02
DUE = text("select work_id from memoryos.work where state = 'ready' and run_after <= clock_timestamp() limit 200")
OPEN = text("select count(*) from memoryos.work where state in ('ready', 'leased')")


def fresh_seed() -> int:
    """Return a seed for one run and show it; with MEMORYOS_TEST_SEED an earlier run is repeated."""
    seed = int(os.environ.get("MEMORYOS_TEST_SEED") or random.SystemRandom().randrange(2**32))
    sys.stdout.write(f"MEMORYOS_TEST_SEED={seed}\n")
    return seed


@dataclass
class Crew:
    """Threads that take whatever is due, in an order of chance, until nothing is owed any more."""

    stack: Stack
    database: Database
    parts: Parts
    hands: int
    chance: random.Random
    logs: list[MutableMapping[str, Any]]
    errors: list[BaseException] = field(default_factory=list)
    failed_deliveries: int = 0

    def drain(self, *, seconds: float, meanwhile: Callable[[], None] | None = None) -> None:
        """Work until nothing is owed and `meanwhile` has ended. What a worker process would not survive is raised."""
        busy = threading.Event()
        busy.set()
        give_up_at = time.monotonic() + seconds
        threads = [threading.Thread(target=self._work, args=(busy, give_up_at, n)) for n in range(self.hands)]
        for thread in threads:
            thread.start()
        try:
            if meanwhile:
                meanwhile()
        finally:
            busy.clear()
            for thread in threads:
                thread.join()
        if self.errors:
            raise self.errors[0]
        assert self._count_open() == 0, f"{self._count_open()} rows are still owed after {seconds:.0f} s"

    def _work(self, busy: threading.Event, give_up_at: float, number: int) -> None:
        chance = random.Random(self.chance.random() + number)
        while time.monotonic() < give_up_at and (busy.is_set() or self._count_open()):
            due: list[int] = []
            try:
                due = self._due()
                deliver(chance.sample(due, min(len(due), 5)))
            except SQLAlchemyError:
                self.failed_deliveries += 1
            except BaseException as error:  # noqa: BLE001 - told to the test's own thread
                self.errors.append(error)
                return
            if not due:
                threading.Event().wait(IDLE_SECONDS)

    def _due(self) -> list[int]:
        with self.database.across_tenants() as connection:
            reap_expired(connection)
            return list(connection.execute(DUE).scalars())

    def count_done(self) -> int:
        """Return how many rows are done."""
        with self.database.across_tenants() as connection:
            return count_done(connection)

    def _count_open(self) -> int:
        with self.database.across_tenants() as connection:
            count: int = connection.execute(OPEN).scalar_one()
            return count


@contextmanager
def hired(
    stack: Stack, *, hands: int = 4, seed: int = 0, model: LanguageModel | None = None, policy: Policy = DEFAULT
) -> Iterator[Crew]:
    """Give this process the runtime of a worker over the test's database, and a crew that uses it."""
    database = Database(stack.url("ledger"), pool_size=hands + 8, ping=True)
    app = Database(stack.url("app"), pool_size=hands + 8, ping=True)
    keeper = LeaseKeeper(Ledger(database), database, process="worker@crew", lease_seconds=LEASE_SECONDS)
    embedder = HashingEmbedder()
    parts = Parts(app, embedder, model or ExtractiveModel(embedder), policy)
    settings = Settings(lease_seconds=LEASE_SECONDS, model_deadline_seconds=LEASE_SECONDS / 2)
    runtime._runtime[:] = [Runtime(os.getpid(), "crew", settings, parts, Ledger(database), database, keeper)]
    try:
        with capture_logs() as logs:
            yield Crew(stack, database, parts, hands, random.Random(seed), logs)
    finally:
        keeper.stop()
        runtime.forget_runtime()
        app.dispose()
        database.dispose()
