"""The relay: rings the doorbell for work that is due. It may die, run twice, or find the broker empty."""

import secrets
import threading
import time
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

import structlog
from celery import Celery
from kombu.exceptions import OperationalError as BrokerError
from redis import Redis, RedisError
from redis.exceptions import ResponseError
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from memoryos_pipeline.domain.alarms import BrokerView
from memoryos_pipeline.domain.work import QUEUE_OF_KIND, WorkKind
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.settings import QUEUES, Settings
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.heartbeats import beat
from memoryos_pipeline.store.publishing import (
    LANE_ROWS,
    count_in_broker,
    forget_broker,
    pick_due,
    pick_suspects,
    reap_expired,
    suspected_kinds,
    unstamp,
)
from memoryos_pipeline.store.vigilance import count, list_paused
from workers.watch import Watch

log = structlog.get_logger("workers.relay")
REAP_EVERY_SECONDS = 1.0
BEAT_EVERY_SECONDS = 10.0
BROKER_AWAY_SECONDS = 1.0
EMPTY_STALE_SECONDS = 5.0
"""A stamp this old says nothing while its queue is empty: whoever took the message has claimed by then, or is gone."""

SHARES = 4
"""Into so many shares the window of a queue is cut; one tenant gets one of them."""

SUSPECTS = 2
"""Rows of a kind that went down with their worker, and are tried again at a time: so many workers may end of them."""

Publish = Callable[[str, Sequence[int]], None]


class Relay:
    """Moves due work ids from Postgres to the broker, a bounded window at a time, tenants taking turns."""

    def __init__(self, database: Database, broker: Redis, publish: Publish, settings: Settings, *, name: str) -> None:
        self._database = database
        self._broker = broker
        self._publish = publish
        self._settings = settings
        self._name = name
        self._epoch: str | None = None
        self._reap_due = self._beat_due = 0.0
        self._watch = Watch(settings)
        self.published = 0

    def run(self, stopped: threading.Event) -> None:
        """Tick until stopped: at once while there is work, after the idle time when there is none."""
        pause = 0.0
        while not stopped.wait(pause):
            try:
                moved = self.tick()
            except (SQLAlchemyError, RedisError, BrokerError) as error:
                log.warning("relay_waits", error=type(error).__name__)
                pause = BROKER_AWAY_SECONDS
            else:
                pause = self._settings.relay_idle_seconds / 4 if moved else self._settings.relay_idle_seconds

    def tick(self) -> int:
        """Look once; return how many work ids were published."""
        self._check_epoch()
        self._keep_house()
        with self._database.across_tenants() as connection:
            paused = {each.kind for each in list_paused(connection)}
            suspected = set(suspected_kinds(connection)) - paused
        moved = sum(self._serve(queue, paused) for queue in QUEUES)
        return moved + sum(self._serve_suspects(kind) for kind in WorkKind if kind in suspected)

    def _serve_suspects(self, kind: WorkKind) -> int:
        """Ring for a few rows that went down with their worker, each alone, whatever else the queue holds."""
        stale = self._settings.relay_stale_seconds
        with self._database.across_tenants() as connection:
            picked = pick_suspects(connection, kind, share=SUSPECTS, stale_seconds=stale)
        return self._ring(QUEUE_OF_KIND[kind], picked, size=1)

    def _check_epoch(self) -> None:
        """Notice a broker that was emptied or replaced: everything ready is then published again."""
        key = f"{self._settings.broker_key_prefix}epoch"
        found = self._broker.get(key)
        epoch = found.decode() if isinstance(found, bytes) else None
        if epoch is None:
            self._forget("broker_epoch_lost")  # first: if the database is away now, the next tick must see it again
            self._broker.set(key, secrets.token_hex(8), nx=True)
            fresh = self._broker.get(key)
            epoch = fresh.decode() if isinstance(fresh, bytes) else None
        elif self._epoch is not None and epoch != self._epoch:
            self._forget("broker_epoch_changed")
        self._epoch = epoch

    def _forget(self, event: str) -> None:
        with self._database.across_tenants() as connection:
            log.info(event, unstamped=forget_broker(connection))
            count(connection, "epoch_lost", 1)

    def _keep_house(self) -> None:
        """Reap leases that ran out, report progress, and watch over what nobody else watches."""
        now = time.monotonic()  # ticks take as long as the machine is busy; leases run out by time
        if now >= self._reap_due:
            self._reap_due = now + REAP_EVERY_SECONDS
            depths = {queue: self._depth(queue) for queue in QUEUES}
            with self._database.across_tenants() as connection:
                reaped = reap_expired(connection)
                count(connection, "leases_reaped", reaped)
            if reaped:
                log.warning("leases_reaped", count=reaped)
            with self._database.across_tenants() as connection:
                self._watch.look(connection, depths, self._look_at_broker())
        if now >= self._beat_due:
            self._beat_due = now + BEAT_EVERY_SECONDS
            beat(self._database, self._name, "relay", completed=self.published)

    def _serve(self, queue: str, paused: Collection[str]) -> int:
        kinds = [str(kind) for kind, target in QUEUE_OF_KIND.items() if target == queue]
        if not kinds:
            return 0
        # A stale stamp may mean that nobody works, not that the message is lost: what lies there counts, however old.
        unheard = self._depth(queue)
        stale = self._settings.relay_stale_seconds
        stale = stale if unheard else min(stale, EMPTY_STALE_SECONDS)
        with self._database.across_tenants() as connection:
            fresh = count_in_broker(connection, kinds, stale_seconds=stale)
            room = self._settings.relay_window - max(fresh, unheard)
            due = [kind for kind in kinds if room > 0 and kind not in paused]
            picked = {kind: self._pick(connection, kind, room=room, stale_seconds=stale) for kind in due}
        # A message holds rows of one tenant: whoever's row ends a worker takes nothing of another tenant along.
        return sum(
            self._ring(queue, work_ids, size=self._size(kind, tenant_id))
            for kind, by_tenant in picked.items()
            for tenant_id, work_ids in by_tenant.items()
        )

    def _pick(self, connection: Connection, kind: str, *, room: int, stale_seconds: float) -> dict[UUID, list[int]]:
        share = max(self._settings.relay_batch, self._settings.relay_window // SHARES)
        narrow = [tenant_id for of_kind, tenant_id in self._watch.troubled if of_kind == kind]
        return pick_due(connection, kind, room=room, share=share, stale_seconds=stale_seconds, narrow=narrow)

    def _size(self, kind: str, tenant_id: UUID) -> int:
        """Return how many rows a message holds: few where each may end the worker that has the others in hand."""
        batch = self._settings.relay_batch
        return min(batch, LANE_ROWS // 2) if (kind, tenant_id) in self._watch.troubled else batch

    def _look_at_broker(self) -> BrokerView | None:
        """Return how full the broker is; None when it does not tell us."""
        try:
            told = self._broker.info("memory")
        except ResponseError:
            return None
        return BrokerView(
            int(told.get("used_memory", 0)), int(told.get("maxmemory", 0)), str(told.get("maxmemory_policy", ""))
        )

    def _depth(self, queue: str) -> int:
        return int(self._broker.llen(f"{self._settings.broker_key_prefix}{queue}"))

    def _ring(self, queue: str, work_ids: list[int], *, size: int) -> int:
        """Publish in batches; whatever the broker refuses is unstamped, so that it is due again at once."""
        for start in range(0, len(work_ids), size):
            reach("after_stamp_before_publish", queue)
            try:
                self._publish(queue, work_ids[start : start + size])
            except (RedisError, BrokerError):
                with self._database.across_tenants() as connection:
                    unstamp(connection, work_ids[start:])
                raise
        self.published += len(work_ids)
        return len(work_ids)


def celery_publisher(app: Celery) -> Publish:
    """Return a publisher over a Celery application; a message shows its work ids and nothing else."""

    def publish(queue: str, work_ids: Sequence[int]) -> None:
        ids = list(work_ids)
        app.send_task(f"memoryos.{queue}", args=[ids], queue=queue, argsrepr=f"({ids},)", kwargsrepr="{}")

    return publish
