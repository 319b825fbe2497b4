"""What beat rings for, and how often. Several beats may run: a sweep takes its slot row once."""

from celery import Celery

from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store.sweeps import SWEEPS

TIDY_SECONDS = 3600.0


def install_schedule(app: Celery, settings: Settings) -> None:
    """Give the application its schedule. A ring that is not heard within its period is dropped."""
    period = settings.sweep_seconds
    entries: dict[str, dict[str, object]] = {
        f"sweep-{name}": {
            "task": "memoryos.sweep",
            "schedule": period,
            "kwargs": {"name": name, "period_seconds": period},
            "options": {"queue": "maintenance", "expires": period},
        }
        for name in SWEEPS
    }
    entries["tidy"] = {"task": "memoryos.tidy", "schedule": TIDY_SECONDS, "options": {"queue": "maintenance"}}
    app.conf.beat_schedule = entries
