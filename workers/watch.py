"""What the relay watches beside its work: queues that stand still, a silent beat, kinds that fail as such."""

import time
from collections.abc import Mapping
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memoryos_pipeline.domain.alarms import (
    UNSERVED_SECONDS,
    WATCHED,
    BrokerView,
    QueueView,
    beat_alarms,
    broker_alarms,
    pause_alarm,
    queue_alarms,
    unknown_kind_alarms,
)
from memoryos_pipeline.domain.work import QUEUE_OF_KIND, find_troubled, kinds_to_pause
from memoryos_pipeline.settings import QUEUES, Settings
from memoryos_pipeline.store.heartbeats import queues_served
from memoryos_pipeline.store.publishing import leased_kinds, seconds_since_slot, unknown_kinds
from memoryos_pipeline.store.sweeps import SWEEPS
from memoryos_pipeline.store.vigilance import list_paused, pause_kind, show_alarms, tallied_lately

log = structlog.get_logger("workers.watch")
TROUBLED_SHARE, TROUBLED_TRIES = 0.5, 20
"""A tenant is troubled when more than this share of so many tries of a kind failed within a minute or two."""


class Watch:
    """Remembers since when queues have been deep, and keeps the alarms of the database true."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._began_at = time.monotonic()
        self._deep_since: dict[str, float] = {}
        self.troubled: set[tuple[str, UUID]] = set()
        """Kinds and tenants whose tries mostly failed of late."""

    def look(self, connection: Connection, depths: Mapping[str, int], broker: BrokerView | None = None) -> None:
        """Pause what is broken as a kind, and raise or take back every alarm. `depths` is messages a queue.

        What nobody may ask of the broker, as `broker`, nobody watches.
        """
        tallies = tallied_lately(connection)
        settings = self._settings
        self.troubled = find_troubled(tallies, share=TROUBLED_SHARE, least=TROUBLED_TRIES)
        broken = kinds_to_pause(tallies, share=settings.pause_share, least=settings.pause_failures)
        for kind, error_class in broken.items():
            reason = f"most of its tries failed within a minute ({error_class})"
            if pause_kind(connection, kind, paused_by="alarm", reason=reason):
                log.error("kind_paused", kind=kind, error_class=error_class)
        moving = leased_kinds(connection) | {each.kind for each in tallies}
        silent = self._sweep_silence(connection)
        alarms = [
            *queue_alarms(self._views(depths, moving, queues_served(connection, silent_seconds=UNSERVED_SECONDS))),
            *beat_alarms(silent, period_seconds=max(settings.sweep_seconds, 1.0)),
            *(pause_alarm(each.kind, reason=each.reason) for each in list_paused(connection)),
            *(broker_alarms(broker) if broker else ()),
            *unknown_kind_alarms(unknown_kinds(connection, list(QUEUE_OF_KIND))),
        ]
        for alarm in show_alarms(connection, alarms, watched=WATCHED):
            log.error("alarm", code=alarm.name, reason=alarm.sentence)

    def _views(self, depths: Mapping[str, int], moving: set[str], served: set[str]) -> list[QueueView]:
        now = time.monotonic()
        views = []
        for queue in QUEUES:
            depth = depths.get(queue, 0)
            since = self._deep_since.setdefault(queue, now) if depth else now
            if not depth:
                self._deep_since.pop(queue, None)
            kinds = {str(kind) for kind, target in QUEUE_OF_KIND.items() if target == queue}
            is_moving = bool(kinds & moving) if kinds else None
            views.append(QueueView(queue, depth, now - since, queue in served, is_moving))
        return views

    def _sweep_silence(self, connection: Connection) -> float:
        """Return for how long no sweep has begun; before the first one, for how long this relay has waited for it."""
        waited = time.monotonic() - self._began_at
        seconds = seconds_since_slot(connection, list(SWEEPS))
        return waited if seconds is None else min(seconds, waited)
