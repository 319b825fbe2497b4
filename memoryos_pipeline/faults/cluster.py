"""A whole system of real processes over one database and one broker, for whoever wants to break it.

    with Cluster(Ground(postgres, valkey, "name", tenant_id, api_key, directory)) as cluster:
        cluster.add_api().start().ready()
        cluster.add_relay().start()
        cluster.add_beat().start()
        cluster.add_worker("one", concurrency=2).start().ready()       # every queue
        cluster.add_worker("two", queues="embed,merge").start().ready()
        with cluster.client() as client:                               # our SDK
            client.add_turns(turns)
        cluster.members["one"].kill()          # also freeze(), thaw(), terminate(), wait(), restart()
        cluster.members["one"].start()
        cluster.drain(60)                      # until nothing is owed; starts again whoever has died meanwhile

A member is given variables for all its lives by `add_worker(..., MEMORYOS_X="...")` and for one life by
`start(MEMORYOS_X="...")`: a failpoint, or the URL of a proxy instead of the database's or the broker's.
Failpoints fire once in a cluster: `fired("before_commit.embed")` tells what one noted, `resume(...)` ends its pause.

Members are started, and started again, only by the thread that made the cluster: the kernel ends them with it.
"""

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from redis import Redis

from memoryos_pipeline.client import MemoryClient
from memoryos_pipeline.client.outbox import Outbox
from memoryos_pipeline.client.publisher import TurnPublisher
from memoryos_pipeline.embedded.plan import ONE_THREAD
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.readiness import responds
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.failpoints import DIRECTORY
from memoryos_pipeline.faults.members import Member, our_environment, wait_until
from memoryos_pipeline.readmodels.fault_figures import count_owed
from memoryos_pipeline.settings import QUEUES
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.sweeps import owe_tails

SHORT = {
    "lease_seconds": "4",
    "model_deadline_seconds": "3",
    "relay_stale_seconds": "4",
    "relay_window": "100",
    "sweep_seconds": "1",
    "database_pool_size": "4",
}
"""Settings under which a fault is over in seconds. A broker that loses a doorbell costs as much as a lost lease."""
POSTGRES_SECONDS = 30.0
READY = " ready."
"""What Celery says once a worker consumes its queues."""


@dataclass(frozen=True)
class Ground:
    """What a cluster stands on: servers, a migrated database with a tenant and its key, a directory to write in."""

    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    database: str
    tenant_id: UUID
    api_key: str
    directory: Path


class Cluster:
    """The processes of one system. Everything it started is gone when its block ends."""

    def __init__(self, ground: Ground, **settings: str) -> None:
        self.ground = ground
        self.tenant_id = ground.tenant_id
        self.members: dict[str, Member] = {}
        self.failpoints = ground.directory / "failpoints"
        self.failpoints.mkdir(exist_ok=True)
        self._port = free_port()
        self._settings = settings
        self.app, self.ledger, self.owner = (
            Database(ground.postgres.url(role, ground.database), pool_size=4, ping=True)
            for role in ("app", "ledger", "owner")
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill every member and close the connections."""
        for member in self.members.values():
            member.kill()
        for database in (self.app, self.ledger, self.owner):
            database.dispose()

    @property
    def api_url(self) -> str:
        """Where the API of this cluster answers, life after life."""
        return f"http://127.0.0.1:{self._port}"

    def environment(self) -> dict[str, str]:
        """Return what every member is given. Settings of the cluster win over the short ones."""
        ground = self.ground
        ours = {f"{role}_url": ground.postgres.url(role, ground.database) for role in ("ledger", "owner")}
        ours |= {"database_url": ground.postgres.url("app", ground.database), "broker_url": ground.valkey.url}
        ours |= {"api_url": self.api_url, "api_port": str(self._port), "api_key": ground.api_key}
        ours |= {"embedder": "hashing", "language_model": "extractive", **SHORT, **self._settings}
        return our_environment(os.environ, ours) | ONE_THREAD | {DIRECTORY: str(self.failpoints)}

    def add(
        self,
        name: str,
        words: tuple[str, ...],
        variables: Mapping[str, str],
        *,
        ready: Callable[[Member], bool] = lambda _: True,
    ) -> Member:
        """Add a member that runs `memoryos WORDS`; it is not started yet."""
        log = self.ground.directory / f"{name}.log"
        member = Member(name, words, log, {**self.environment(), **variables}, ready)
        self.members[name] = member
        return member

    def add_api(self, name: str = "api", **variables: str) -> Member:
        """Add the API. It is ready when it says so."""
        return self.add(name, ("api",), variables, ready=lambda _: responds(f"{self.api_url}/readyz"))

    def add_relay(self, name: str = "relay", **variables: str) -> Member:
        """Add a relay; there may be several."""
        return self.add(name, ("relay",), variables)

    def add_beat(self, name: str = "beat", **variables: str) -> Member:
        """Add a beat; there may be several."""
        return self.add(name, ("beat",), variables)

    def add_worker(
        self,
        name: str,
        *,
        queues: str = ",".join(QUEUES),
        concurrency: int = 2,
        pool: str = "threads",
        **variables: str,
    ) -> Member:
        """Add a worker for these queues. It is ready when it consumes them."""
        words = ("worker", "--queues", queues, "--concurrency", str(concurrency), "--pool", pool)
        return self.add(name, words, variables, ready=_has_found_its_queues)

    def client(self) -> MemoryClient:
        """Return our SDK, connected to this cluster."""
        return MemoryClient(self.api_url, self.ground.api_key)

    def publisher(self, outbox: Outbox) -> TurnPublisher:
        """Return our publisher over an outbox. Both are closed by whoever asked for it."""
        return TurnPublisher(self.ground.valkey.url, self.api_url, self.ground.api_key, outbox)

    def wipe_broker(self) -> None:
        """FLUSHALL: every message is gone, and the epoch with them."""
        with Redis.from_url(self.ground.valkey.url, socket_timeout=5) as broker:
            broker.flushall()

    def restart_postgres(self, *, at_once: bool = False) -> None:
        """Stop Postgres, fast or at once (as in a crash), and start it; returns when it answers."""
        process = self.ground.postgres.process
        if process is not None:
            process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            process.wait(POSTGRES_SECONDS)
        self.ground.postgres.start()

    def tend(self) -> list[Member]:
        """Start again whoever has died, as a service manager does; return who that was."""
        dead = [member for member in self.members.values() if member.is_wanted and not member.is_running]
        for member in dead:
            member.start()
        return dead

    def wait_until(self, claim: Callable[[], object], *, seconds: float) -> bool:
        """Look until a claim holds, starting the dead again meanwhile; tell whether it did in time."""

        def look() -> bool:
            self.tend()
            return bool(claim())

        return wait_until(look, seconds=seconds)

    def drain(self, seconds: float) -> None:
        """Return once no work is owed, starting the dead again meanwhile. Raises TimeoutError saying what is left.

        Hot tails are owed an index at once, or a sweep would owe it some seconds after everything was done.
        """
        if not self.wait_until(lambda: not owe_tails(self.ledger) and not self.owed(), seconds=seconds):
            raise TimeoutError(f"still owed: {self.owed()}")

    def owed(self) -> dict[str, int]:
        """Return how many rows of each kind are ready or leased."""
        with self.ledger.across_tenants() as connection:
            return count_owed(connection)

    def fired(self, name: str) -> dict[str, Any] | None:
        """Return what a failpoint noted when it fired, None while it has not. Colons are dots in its name."""
        note = self.failpoints / f"{name}.fired"
        return dict(json.loads(note.read_text(encoding="utf-8"))) if note.exists() else None

    def resume(self, name: str) -> None:
        """Let whoever pauses at a failpoint go on; waits for them to pause."""
        fifo = self.failpoints / f"{name}.go"
        if not fifo.exists():
            os.mkfifo(fifo)
        fifo.open("wb").close()

    def count_written(self, words: str) -> int:
        """Return how often the logs of all members hold these words."""
        return sum(member.written().count(words) for member in self.members.values())


def _has_found_its_queues(member: Member) -> bool:
    return member.written().count(READY) >= member.starts
