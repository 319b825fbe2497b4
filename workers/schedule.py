"""What beat rings for, and how often. Several beats may run: whatever is rung for takes its slot row once."""

from typing import Any

import structlog
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler

from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store.sweeps import SWEEPS

log = structlog.get_logger("workers.schedule")
QUEUE = "maintenance"
RARELY_SECONDS = 300.0
"""How often beat rings for what is done once an hour or a day: it forgets when it stops, slots do not."""
MOST_WAITING = 20
"""Messages in the queue beyond which beat rings no more: nobody serves it, and one sweep does the work of many."""
PATIENCE_PERIODS = 12
"""How long a ring may wait. Were it dropped after one period, workers that are busy for longer would never sweep."""


class PatientScheduler(Scheduler):  # type: ignore[misc]
    """A scheduler that does not fill a queue nobody takes from."""

    _holds_back = False

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Ring for an entry, unless enough rings wait unheard; that is said once, not with every ring."""
        waiting = self._count_waiting()
        held, self._holds_back = self._holds_back, waiting >= MOST_WAITING
        if not self._holds_back:
            super().apply_entry(entry, producer=producer)
        elif not held:
            log.warning("beat_holds_back", queue=QUEUE, count=waiting)

    def _count_waiting(self) -> int:
        """Return how many messages wait; while the broker is away none is known of, and ringing will say so."""
        try:
            with self.app.connection_for_read() as connection:
                found: int = connection.default_channel.queue_declare(QUEUE).message_count
        except connection.recoverable_connection_errors:
            return 0
        return found


def install_schedule(app: Celery, settings: Settings) -> None:
    """Give the application its schedule. A ring that is not heard for some periods is dropped."""
    period = settings.sweep_seconds
    entries = {f"sweep-{name}": _entry("memoryos.sweep", period, name=name) for name in SWEEPS}
    entries["tidy"] = _entry("memoryos.tidy", RARELY_SECONDS)
    entries["doctor"] = _entry("memoryos.doctor", RARELY_SECONDS, period_seconds=settings.doctor_seconds)
    app.conf.beat_schedule = entries


def _entry(task: str, every_seconds: float, **arguments: object) -> dict[str, object]:
    return {
        "task": task,
        "schedule": every_seconds,
        "kwargs": {"period_seconds": every_seconds, **arguments},
        "options": {"queue": QUEUE, "expires": PATIENCE_PERIODS * every_seconds},
    }
