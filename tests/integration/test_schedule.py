"""Beat rings for what is due, and stops when nobody listens."""

from collections.abc import Iterator

import pytest
from celery.beat import ScheduleEntry
from pydantic import SecretStr
from redis import Redis

from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import Settings
from workers.celery_app import build_app
from workers.schedule import MOST_WAITING, PatientScheduler, install_schedule

PREFIX = "beat:"


@pytest.fixture
def settings(valkey: EmbeddedValkey) -> Iterator[Settings]:
    client = Redis.from_url(valkey.url)
    client.flushall()
    yield Settings(broker_url=SecretStr(valkey.url), broker_key_prefix=PREFIX)
    client.close()


class TestRing:
    def test_a_queue_nobody_serves_is_not_filled(self, settings: Settings, valkey: EmbeddedValkey) -> None:
        """However long the worker of `maintenance` is away: rings stop at a bound and begin again behind it."""
        app = build_app(settings)
        install_schedule(app, settings)
        scheduler = PatientScheduler(app=app, lazy=True)
        entry = ScheduleEntry(name="sweep-heat", app=app, **app.conf.beat_schedule["sweep-heat"])
        broker = Redis.from_url(valkey.url)
        for _ in range(MOST_WAITING + 5):
            scheduler.apply_entry(entry, producer=scheduler.producer)
        full = broker.llen(f"{PREFIX}maintenance")
        broker.delete(f"{PREFIX}maintenance")
        scheduler.apply_entry(entry, producer=scheduler.producer)

        assert (full, broker.llen(f"{PREFIX}maintenance")) == (MOST_WAITING, 1)
        broker.close()

    def test_every_ring_may_wait_for_some_periods(self, settings: Settings) -> None:
        """Busy workers hear it late and sweep all the same; what runs rarely does not depend on beat's memory."""
        app = build_app(settings)
        install_schedule(app, settings)
        entries = app.conf.beat_schedule

        assert all(entry["options"]["expires"] > 5 * entry["schedule"] for entry in entries.values())
        assert entries["doctor"]["schedule"] < entries["doctor"]["kwargs"]["period_seconds"] == settings.doctor_seconds
