"""Kills by chance under load, the broker emptied and the database restarted in between: the short form of the bench."""

import pytest

from memoryos_pipeline.faults.campaign import NARROW, Campaign, Plan
from memoryos_pipeline.faults.cluster import Cluster, Ground

TURNS, KILLS, FLUSHES, RESTARTS = 800, 11, 2, 1


@pytest.mark.slow
class TestCampaign:
    def test_nothing_is_lost_or_doubled(self, ground: Ground, seed: int) -> None:
        """Eight workers, relay and API killed in an order of chance: nothing is lost, doubled, unexpected or broken."""
        plan = Plan(turns=TURNS, kills=KILLS, flushes=FLUSHES, database_restarts=RESTARTS, seed=seed, freezes=1)
        with Cluster(ground, **NARROW) as cluster:
            figures = Campaign(cluster, plan).run()

        assert figures["wrongs"] == {}
        assert figures["acknowledged"] == TURNS
        assert figures["kills"] == KILLS
