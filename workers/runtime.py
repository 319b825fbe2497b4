"""What one worker process holds: its parts, its ledger, the leases it keeps alive. Never shared across a fork."""

import faulthandler
import math
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from memoryos_pipeline.domain.errors import MemoryosError
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.pipeline import build_ledger_database, build_parts
from memoryos_pipeline.settings import LEDGER_POOL_OF_A_WORKER, Settings, load_settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.heartbeats import beat
from memoryos_pipeline.store.ledger import Ledger
from memoryos_pipeline.store.vigilance import add_tallies, count

log = structlog.get_logger("workers.runtime")
FENCED = "fenced"
BEAT_SECONDS = 10.0
STOP_SECONDS = 5.0
HUNG = 70
"""With which code a process ends that has a hung stage in it."""
STDERR = 2
"""The real one: Celery puts something else in the place of `sys.stderr`."""
TALLY_SECONDS = 1.0


class Tally:
    """How work ended in this process, written down now and then: a statement an execution would cost too much."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._counts: Counter[tuple[UUID, str, str]] = Counter()
        self._written_at = time.monotonic()

    def note(self, leases: Sequence[Lease], outcome: str) -> None:
        """Count how these ended: `done`, `fenced` or the class of an error. Never raises."""
        with self._lock:
            self._counts.update((lease.tenant_id, lease.kind, outcome) for lease in leases)
        if outcome != "done" and time.monotonic() - self._written_at >= TALLY_SECONDS:
            self.write()

    def write(self) -> None:
        """Write down what was counted; while Postgres is away it is kept for later."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            self._written_at = time.monotonic()
        if not counts:
            return
        try:
            with self._database.across_tenants() as connection:
                add_tallies(connection, counts)
                count(connection, FENCED, sum(n for (_, _, outcome), n in counts.items() if outcome == FENCED))
        except SQLAlchemyError as error:
            log.warning("tally_waits", error=type(error).__name__)
            with self._lock:
                self._counts.update(counts)


def keep_watch(stuck_seconds: float) -> None:
    """End this process when none of its threads has got to run for so long, and write down where each stands.

    A stage may hang in a way that lets no other thread run: then nobody beats, and nobody in here could end it. What
    ends it needs no interpreter. Never called in a process that forks.
    """
    threading.Thread(target=_wind_up_for_ever, args=[stuck_seconds], name="watch", daemon=True).start()


def _wind_up_for_ever(stuck_seconds: float) -> None:
    never = threading.Event()
    while True:
        faulthandler.dump_traceback_later(stuck_seconds, exit=True, file=STDERR)
        never.wait(min(BEAT_SECONDS, stuck_seconds / 4))


class LeaseKeeper:
    """Beats for every lease this process holds, and says which were lost. One thread a process.

    A thread cannot be ended from outside. So when a stage runs for longer than `stage_seconds` its process ends, or
    it would be beaten for as long as it hangs: whoever is told the row next counts it as one that vanished.
    """

    def __init__(
        self,
        ledger: Ledger,
        database: Database,
        *,
        process: str,
        lease_seconds: float,
        stage_seconds: float = math.inf,
        queues: Sequence[str] = (),
    ) -> None:
        self.tally = Tally(database)
        self._ledger = ledger
        self._database = database
        self._process = process
        self._queues = tuple(queues)
        self._lease_seconds = lease_seconds
        self._stage_seconds = stage_seconds
        self._held: dict[tuple[int, int], Lease] = {}
        self._begun: dict[tuple[int, int], float] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.completed = 0
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
        self._thread.start()

    def take(self, leases: Sequence[Lease]) -> None:
        """Keep these leases alive from now on."""
        with self._lock:
            self._held.update({(lease.work_id, lease.fence): lease for lease in leases})

    def begin(self, lease: Lease) -> None:
        """Note that the stage of a lease begins now."""
        with self._lock:
            self._begun[lease.work_id, lease.fence] = time.monotonic()

    def drop(self, lease: Lease) -> None:
        """Stop beating for a lease: it was completed, failed or lost."""
        with self._lock:
            self._held.pop((lease.work_id, lease.fence), None)
            self._begun.pop((lease.work_id, lease.fence), None)

    def holds(self, lease: Lease) -> bool:
        """Tell whether the lease still stood at the last beat."""
        with self._lock:
            return (lease.work_id, lease.fence) in self._held

    def stop(self) -> None:
        """Stop beating; leases that are left run out by themselves."""
        self._stopped.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        pause = 0.0 if self._queues else BEAT_SECONDS  # whoever serves queues says so at once
        while not self._stopped.wait(min(self._lease_seconds / 3, pause)):
            pause = BEAT_SECONDS
            self._end_when_hung()
            try:
                self._beat_once()
            except SQLAlchemyError as error:
                log.warning("heartbeat_failed", error=type(error).__name__)

    def _end_when_hung(self) -> None:
        """End the process over a stage that hangs; what else it holds is handed back first."""
        latest = time.monotonic() - self._stage_seconds
        with self._lock:
            hung = {key for key, begun in self._begun.items() if begun < latest}
            others = [lease for key, lease in self._held.items() if key not in hung]
        if not hung:
            return
        log.error("stage_hung", work_ids=[work_id for work_id, _ in hung], seconds=self._stage_seconds)
        try:
            self._ledger.release(others)
        except SQLAlchemyError as error:
            log.warning("leases_left_to_run_out", error=type(error).__name__)
        os._exit(HUNG)

    def _beat_once(self) -> None:
        beat(self._database, self._process, "worker", completed=self.completed, queues=self._queues)
        self.tally.write()
        with self._lock:
            held = list(self._held.values())
        if held:
            alive = self._ledger.beat(held, lease_seconds=self._lease_seconds)
            for lease in held:
                if lease.work_id not in alive:
                    self.drop(lease)


@dataclass(frozen=True)
class Runtime:
    """The concrete things of one worker process."""

    pid: int
    owner: str
    settings: Settings
    parts: Parts
    ledger: Ledger
    ledger_database: Database
    keeper: LeaseKeeper


_lock = threading.Lock()
_runtime: list[Runtime] = []


def get_runtime() -> Runtime:
    """Return this process's runtime, built on first use; a forked child builds its own."""
    with _lock:
        if not _runtime or _runtime[0].pid != os.getpid():
            _runtime[:] = [_build(load_settings())]
        return _runtime[0]


def forget_runtime() -> None:
    """Drop what a parent process had built, without touching its sockets."""
    _runtime.clear()


def show_up(queues: Sequence[str]) -> None:
    """Build this process's runtime before its first message, so that an idle worker is seen to serve its queues."""
    _served[:] = queues
    try:
        settings = get_runtime().settings
        keep_watch(max(settings.stage_seconds, 2 * settings.lease_seconds))
    except MemoryosError as error:
        log.warning("worker_cannot_work", error=type(error).__name__, reason=str(error))


def show_up_soon(queues: Sequence[str]) -> None:
    """Show up without holding up whoever takes messages in this very process."""
    threading.Thread(target=show_up, args=[queues], name="show-up", daemon=True).start()


_served: list[str] = []
"""What this process takes messages from; a forked child inherits it."""


def _build(settings: Settings) -> Runtime:
    database = build_ledger_database(settings, pool_size=LEDGER_POOL_OF_A_WORKER)
    ledger = Ledger(database)
    owner = f"{socket.gethostname()}:{os.getpid()}"
    parts = build_parts(settings)
    lease_seconds = settings.lease_seconds
    process = f"worker@{owner}"
    keeper = LeaseKeeper(
        ledger,
        database,
        process=process,
        lease_seconds=lease_seconds,
        stage_seconds=settings.stage_seconds,
        queues=_served,
    )
    return Runtime(os.getpid(), owner, settings, parts, ledger, database, keeper)
