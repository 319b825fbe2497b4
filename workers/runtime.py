"""What one worker process holds: its parts, its ledger, the leases it keeps alive. Never shared across a fork."""

import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError

from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.pipeline import build_ledger_database, build_parts
from memoryos_pipeline.settings import Settings, load_settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.heartbeats import beat
from memoryos_pipeline.store.ledger import Ledger

log = structlog.get_logger("workers.runtime")


class LeaseKeeper:
    """Beats for every lease this process holds, and says which were lost. One thread a process."""

    def __init__(self, ledger: Ledger, database: Database, *, process: str, lease_seconds: float) -> None:
        self._ledger = ledger
        self._database = database
        self._process = process
        self._lease_seconds = lease_seconds
        self._held: dict[tuple[int, int], Lease] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.completed = 0
        threading.Thread(target=self._run, name="lease-keeper", daemon=True).start()

    def take(self, leases: Sequence[Lease]) -> None:
        """Keep these leases alive from now on."""
        with self._lock:
            self._held.update({(lease.work_id, lease.fence): lease for lease in leases})

    def drop(self, lease: Lease) -> None:
        """Stop beating for a lease: it was completed, failed or lost."""
        with self._lock:
            self._held.pop((lease.work_id, lease.fence), None)

    def holds(self, lease: Lease) -> bool:
        """Tell whether the lease still stood at the last beat."""
        with self._lock:
            return (lease.work_id, lease.fence) in self._held

    def stop(self) -> None:
        """Stop beating; leases that are left run out by themselves."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(min(self._lease_seconds / 3, 10.0)):
            try:
                self._beat_once()
            except SQLAlchemyError as error:
                log.warning("heartbeat_failed", error=type(error).__name__)

    def _beat_once(self) -> None:
        beat(self._database, self._process, "worker", completed=self.completed)
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


def _build(settings: Settings) -> Runtime:
    database = build_ledger_database(settings, pool_size=4)
    ledger = Ledger(database)
    owner = f"{socket.gethostname()}:{os.getpid()}"
    keeper = LeaseKeeper(ledger, database, process=f"worker@{owner}", lease_seconds=settings.lease_seconds)
    return Runtime(os.getpid(), owner, settings, build_parts(settings), ledger, database, keeper)
