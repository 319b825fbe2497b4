"""Postgres goes and comes under load: callers are told 503 or nothing, never a false 202, and everybody goes on."""

import signal
import sys
import time

import pytest

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal, read_journal
from memoryos_pipeline.readmodels.fault_figures import count_done
from tests.faults.traffic import Traffic

DRAIN_SECONDS = 180.0
AWAY_SECONDS = 1.0
HEALED_SECONDS = 30.0
HOWS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


@pytest.fixture(scope="module")
def system(cluster: Cluster) -> Cluster:
    """An API, a relay, a beat and two workers."""
    cluster.add_api().start().ready()
    cluster.add_relay().start()
    cluster.add_beat().start()
    cluster.add_worker("one").start().ready()
    cluster.add_worker("two").start().ready()
    return cluster


def _stop(cluster: Cluster, how: signal.Signals) -> None:
    process = cluster.ground.postgres.process
    assert process is not None
    process.send_signal(how)
    process.wait(30)


def _count_done(cluster: Cluster) -> int:
    with cluster.ledger.across_tenants() as connection:
        return count_done(connection)


@pytest.mark.slow
class TestDatabase:
    @pytest.mark.parametrize("how", HOWS)
    def test_a_restart_loses_and_doubles_nothing(
        self, system: Cluster, journal: ClientJournal, seed: int, how: str
    ) -> None:
        """Stopped under load: what was acknowledged is there, once; nobody has to be started again."""
        lives = {name: member.starts for name, member in system.members.items()}
        with Traffic(system, journal, how, turns=100, seed=seed) as traffic:
            traffic.go_on(2.0)
            _stop(system, HOWS[how])
            traffic.go_on(AWAY_SECONDS)
            system.ground.postgres.start()
            begun, said, done = time.monotonic(), traffic.sent, _count_done(system)
            assert system.wait_until(lambda: traffic.sent > said, seconds=HEALED_SECONDS)
            answers = time.monotonic() - begun
            assert system.wait_until(lambda: _count_done(system) > done, seconds=HEALED_SECONDS)
            works = time.monotonic() - begun
        system.drain(DRAIN_SECONDS)

        sys.stdout.write(f"{how}: takes turns again after {answers:.1f} s, works again after {works:.1f} s\n")
        assert {name: member.starts for name, member in system.members.items()} == lives
        assert {each.outcome for each in read_journal(journal.path).values()} == {"ok"}
        assert '"outcome": "unknown"' in journal.path.read_text()
        assert check(system, journal.path).wrongs() == {}
