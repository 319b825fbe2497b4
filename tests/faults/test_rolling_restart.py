"""Workers asked to stop one after the other under load: each ends in time and hands back what it has not begun."""

import pytest

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.traffic import Traffic
from memoryos_pipeline.readmodels.fault_figures import count_done, count_troubled

ROUNDS = 3
TURNS = 400
ROWS_BETWEEN = 15
GRACE_SECONDS = 30.0
DRAIN_SECONDS = 240.0


def _count_done(cluster: Cluster) -> int:
    with cluster.ledger.across_tenants() as connection:
        return count_done(connection)


def _count_troubled(cluster: Cluster) -> int:
    with cluster.ledger.across_tenants() as connection:
        return count_troubled(connection)


@pytest.mark.slow
class TestStop:
    def test_a_rolling_restart_costs_nothing(self, cluster: Cluster, journal: ClientJournal, seed: int) -> None:
        """Three rounds over two workers: none is killed, no attempt is burnt, nothing is lost or done twice."""
        cluster.add_api().start()
        cluster.add_relay().start()
        workers = [cluster.add_worker(f"worker-{number}").start() for number in range(2)]
        with Traffic(cluster, journal, turns=TURNS, seed=seed) as traffic:
            traffic.open.set()
            for worker in [*workers] * ROUNDS:
                worker.ready()
                enough = _count_done(cluster) + ROWS_BETWEEN
                cluster.wait_until(
                    lambda enough=enough: _count_done(cluster) >= enough or (traffic.is_over and not cluster.owed()),
                    seconds=DRAIN_SECONDS,
                )
                worker.terminate()
                assert worker.wait(GRACE_SECONDS) == 0
                worker.start()
            assert cluster.wait_until(lambda: traffic.is_over, seconds=DRAIN_SECONDS)
        cluster.drain(DRAIN_SECONDS)

        assert _count_troubled(cluster) == 0
        verdict = check(cluster, journal.path)
        assert verdict.wrongs() == {}
        assert verdict.acknowledged == TURNS
