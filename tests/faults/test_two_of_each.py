"""Two relays and two beats at once, and a relay that dies between its stamp and its message."""

import pytest

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.traffic import Traffic
from memoryos_pipeline.settings import QUEUES

TURNS = 400
DRAIN_SECONDS = 240.0
STAMPED = ("maintenance", "summarize", "embed", "heat")


@pytest.mark.slow
class TestTwo:
    def test_relays_and_beats_do_not_step_on_each_other(
        self, cluster: Cluster, journal: ClientJournal, seed: int
    ) -> None:
        """Relays die with rows stamped and unsent while others work: all is done, and once."""
        assert set(STAMPED) <= set(QUEUES)
        cluster.add_api().start()
        deaths = ",".join(f"after_stamp_before_publish:{queue}=kill" for queue in STAMPED)
        for number in range(2):
            cluster.add_relay(f"relay-{number}", MEMORYOS_FAILPOINTS=deaths).start()
            cluster.add_beat(f"beat-{number}").start()
            cluster.add_worker(f"worker-{number}").start()
        with Traffic(cluster, journal, turns=TURNS, seed=seed) as traffic:
            traffic.open.set()
            assert cluster.wait_until(lambda: traffic.is_over, seconds=DRAIN_SECONDS)
        cluster.drain(DRAIN_SECONDS)

        assert [queue for queue in STAMPED if not cluster.fired(f"after_stamp_before_publish.{queue}")] == []
        verdict = check(cluster, journal.path)
        assert verdict.wrongs() == {}
        assert verdict.acknowledged == TURNS
