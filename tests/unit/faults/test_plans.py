"""What a fault run decides before it starts, and how it sums up seconds: all of it repeatable."""

from collections import Counter

import pytest

from memoryos_pipeline.faults.campaign import KINDS, Plan, order_of_faults
from memoryos_pipeline.faults.recovery import Spans
from memoryos_pipeline.faults.traffic import stories

PLAN = Plan(turns=1_000, kills=140, flushes=30, database_restarts=10, seed=7)


class TestOrderOfFaults:
    def test_a_seed_repeats_it(self) -> None:
        """The same seed gives the same order, another seed another."""
        other = Plan(turns=1_000, kills=140, flushes=30, database_restarts=10, seed=8)

        assert order_of_faults(PLAN) == order_of_faults(PLAN) != order_of_faults(other)

    def test_kills_are_spread_over_every_kind(self) -> None:
        """Every kind of work, the queue's way in, relay and API die about equally often."""
        counts = Counter(order_of_faults(PLAN))
        assert (counts.pop("flush"), counts.pop("database")) == (30, 10)
        assert set(counts) == {*KINDS, "ingest", "relay", "api"}
        assert max(counts.values()) - min(counts.values()) <= 1


class TestStories:
    def test_a_seed_repeats_them(self) -> None:
        """As many turns as asked for, the same for the same seed, a user each, in four languages."""
        told = stories(250, seed=7)

        assert [len(story.turns) for story in told] == [100, 100, 50]
        assert told == stories(250, seed=7)
        assert len({story.user.partition("-")[0] for story in stories(400, seed=7)}) == 4


class TestSpans:
    @pytest.mark.parametrize(("share", "seconds"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)])
    def test_percentiles_are_measured_values(self, share: float, seconds: float) -> None:
        """The nearest rank, never a value between two."""
        assert Spans([float(n) for n in range(100, 0, -1)]).percentile(share) == seconds

    def test_nothing_measured_is_not_zero(self) -> None:
        """Without a measurement there is no figure."""
        assert Spans().figures() == {"count": 0, "p50": None, "p99": None, "max": None}
