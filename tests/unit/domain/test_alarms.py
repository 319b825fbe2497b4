"""What needs a person, and what does not."""

import pytest

from memoryos_pipeline.domain.alarms import BrokerView, QueueView, beat_alarms, broker_alarms, queue_alarms


class TestQueue:
    @pytest.mark.parametrize(
        ("view", "alarm"),
        [
            (QueueView("embed", 0, 0, is_served=False, is_moving=False), None),
            (QueueView("embed", 5, 10, is_served=False, is_moving=False), None),
            (QueueView("embed", 5, 31, is_served=False, is_moving=False), "queue_unserved"),
            (QueueView("embed", 5, 31, is_served=True, is_moving=False), None),
            (QueueView("embed", 5, 61, is_served=True, is_moving=False), "queue_still"),
            (QueueView("embed", 5, 900, is_served=True, is_moving=True), None),
            (QueueView("ingest", 5, 31, is_served=False, is_moving=None), "queue_unserved"),
            (QueueView("ingest", 5, 900, is_served=True, is_moving=None), None),
        ],
    )
    def test_depth_without_movement_is_told(self, view: QueueView, alarm: str | None) -> None:
        """A deep queue is no alarm while something of it is being done, or before its time is over."""
        assert [each.name for each in queue_alarms([view])] == ([alarm] if alarm else [])


class TestBeat:
    def test_two_periods_of_silence_are_told(self) -> None:
        """Not before: a sweep may be late once."""
        assert beat_alarms(10.0, period_seconds=5) == []
        assert [each.name for each in beat_alarms(10.1, period_seconds=5)] == ["beat_silent"]


class TestBroker:
    @pytest.mark.parametrize(
        ("used", "most", "policy", "names"),
        [
            (49, 100, "noeviction", []),
            (50, 100, "noeviction", ["broker_full"]),
            (1, 100, "allkeys-lru", ["broker_evicts"]),
            (10**9, 0, "allkeys-lru", []),
        ],
    )
    def test_a_broker_that_loses_or_refuses_is_told(self, used: int, most: int, policy: str, names: list[str]) -> None:
        """From half of its memory on, and whatever it holds when it would evict; one without a bound does neither."""
        assert [alarm.name for alarm in broker_alarms(BrokerView(used, most, policy))] == names
