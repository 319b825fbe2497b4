"""Workers that stand still: past their lease with work in hand, or idle while a message is already theirs."""

import pytest

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import HttpWriter, conversation
from memoryos_pipeline.readmodels.fault_figures import rung_rows

DRAIN_SECONDS = 240.0
TIMES = 3


@pytest.fixture(scope="module")
def running(cluster: Cluster) -> Cluster:
    """An API and a relay, and no worker yet."""
    cluster.add_api().start()
    cluster.add_relay().start()
    cluster.members["api"].ready()
    return cluster


def _send(cluster: Cluster, journal: ClientJournal, user: str) -> None:
    with HttpWriter(cluster, journal) as http:
        assert http.send(conversation(40, user=user))


def _fenced(cluster: Cluster) -> int:
    return cluster.count_written('"work_fenced"')


@pytest.mark.slow
class TestFreeze:
    def test_who_comes_back_too_late_changes_nothing(self, running: Cluster, journal: ClientJournal) -> None:
        """Stopped with a row in hand until another worker has done it: the late one is fenced, and that is counted."""
        late = running.add_worker("late", concurrency=1)
        late.start(MEMORYOS_FAILPOINTS="after_claim:summarize=stop").ready()
        _send(running, journal, "frozen")
        assert running.wait_until(lambda: running.fired("after_claim.summarize"), seconds=DRAIN_SECONDS)
        other = running.add_worker("other").start().ready()
        running.drain(DRAIN_SECONDS)
        late.thaw()

        assert running.wait_until(lambda: _fenced(running) >= 1, seconds=DRAIN_SECONDS)
        for member in (late, other):
            member.terminate()
            assert member.wait() == 0
        assert check(running, journal.path).wrongs() == {}

    @pytest.mark.parametrize("time", range(TIMES))
    def test_what_an_idle_worker_took_along_is_delivered_again(
        self, running: Cluster, journal: ClientJournal, time: int
    ) -> None:
        """Stopped idle, then killed with messages that it never read: another worker gets them."""
        idle = running.add_worker(f"idle-{time}").start().ready()
        idle.freeze()
        _send(running, journal, f"unread-{time}")
        assert running.wait_until(lambda: _is_rung(running), seconds=DRAIN_SECONDS)
        idle.kill(for_good=True)
        heir = running.add_worker(f"heir-{time}").start()
        running.drain(DRAIN_SECONDS)

        heir.terminate()
        assert heir.wait() == 0
        assert check(running, journal.path).wrongs() == {}


def _is_rung(cluster: Cluster) -> bool:
    with cluster.ledger.across_tenants() as connection:
        return bool(rung_rows(connection)[0])
