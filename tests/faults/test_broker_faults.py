"""The broker is a doorbell: emptied, killed, full, locked or far away, it costs seconds; callers do not notice."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from redis import Redis

from memoryos_pipeline.embedded.process import kill_session
from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal, read_journal
from memoryos_pipeline.readmodels.fault_figures import count_done, rung_rows, still_unheard
from tests.faults.proxy import FaultyProxy
from tests.faults.traffic import Traffic

DRAIN_SECONDS = 180.0
FLUSHES = 5
FLUSH_EVERY_SECONDS = 3.0
OUTAGE_SECONDS = 3.0
CONSUMES_AGAIN_SECONDS = 60.0


@pytest.fixture(scope="module")
def system(cluster: Cluster) -> Cluster:
    """An API, a relay, a beat and two workers."""
    cluster.add_api().start().ready()
    cluster.add_relay().start()
    cluster.add_beat().start()
    cluster.add_worker("one").start().ready()
    cluster.add_worker("two").start().ready()
    return cluster


@contextmanager
def _broker(cluster: Cluster) -> Iterator[Redis]:
    with Redis.from_url(cluster.ground.valkey.url, socket_timeout=5, retry=None) as broker:
        yield broker


def _wait_until_heard(cluster: Cluster) -> float:
    """Return how many seconds it takes until every row whose doorbell is in the broker now is claimed or rung again."""
    with cluster.ledger.across_tenants() as connection:
        rung, since = rung_rows(connection)
    begun = time.monotonic()

    def is_heard() -> bool:
        with cluster.ledger.across_tenants() as connection:
            return not still_unheard(connection, rung, since=since)

    assert cluster.wait_until(is_heard, seconds=DRAIN_SECONDS)
    return time.monotonic() - begun


def _no_caller_noticed(journal: ClientJournal) -> bool:
    """Tell whether every turn was acknowledged, and none ever left without an answer."""
    return '"outcome": "unknown"' not in journal.path.read_text() and all(
        each.outcome == "ok" for each in read_journal(journal.path).values()
    )


def _kill(cluster: Cluster) -> None:
    process = cluster.ground.valkey.process
    assert process is not None
    kill_session(process)


def _start(cluster: Cluster) -> None:
    cluster.ground.valkey.start()


def _stop(cluster: Cluster) -> None:
    cluster.ground.valkey.stop()


def _fill(cluster: Cluster) -> None:
    with _broker(cluster) as broker:
        broker.config_set("maxmemory", 1)


def _make_room(cluster: Cluster) -> None:
    with _broker(cluster) as broker:
        broker.config_set("maxmemory", "128mb")


def _lock(cluster: Cluster) -> None:
    """Change the password under everybody's feet."""
    with _broker(cluster) as broker:
        broker.config_set("requirepass", "another")
        broker.client_kill_filter(_type="normal", skipme=True)


def _unlock(cluster: Cluster) -> None:
    url = cluster.ground.valkey.url
    password = url.split("@")[0].rpartition(":")[2]
    with Redis.from_url(url.replace(password, "another")) as broker:
        broker.config_set("requirepass", password)


FAULTS: dict[str, tuple[Callable[[Cluster], None], Callable[[Cluster], None]]] = {
    "killed": (_kill, _start),
    "restarted": (_stop, _start),
    "full": (_fill, _make_room),
    "locked": (_lock, _unlock),
}


@pytest.mark.slow
class TestBroker:
    def test_an_emptied_broker_costs_a_tick(self, system: Cluster, journal: ClientJournal, seed: int) -> None:
        """FLUSHALL again and again under load: every doorbell is rung again, nothing is lost, doubled or left."""
        waits = []
        with Traffic(system, journal, "flushed", seed=seed) as traffic, _broker(system) as broker:
            for _ in range(FLUSHES):
                broker.flushall()
                waits.append(_wait_until_heard(system))
                traffic.go_on(FLUSH_EVERY_SECONDS)
        system.drain(DRAIN_SECONDS)

        sys.stdout.write(f"heard again after a flush: {sorted(round(each, 2) for each in waits)} s\n")
        assert traffic.sent > 0
        assert check(system, journal.path).wrongs() == {}
        assert _no_caller_noticed(journal)

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_broker_that_is_away_costs_time(
        self, system: Cluster, journal: ClientJournal, seed: int, fault: str
    ) -> None:
        """Killed and empty, stopped, full or with another password: callers are answered 202 throughout, all drains."""
        begin, end = FAULTS[fault]
        with Traffic(system, journal, fault, turns=80, seed=seed) as traffic:
            traffic.go_on(1.0)
            begin(system)
            before = traffic.sent
            traffic.go_on(OUTAGE_SECONDS)
            during = traffic.sent - before
            end(system)
        begun = time.monotonic()
        system.drain(DRAIN_SECONDS)

        starts = {name: member.starts for name, member in system.members.items()}
        sys.stdout.write(f"{fault}: drained {time.monotonic() - begun:.1f} s afterwards; lives {starts}\n")
        assert during > 0
        assert check(system, journal.path).wrongs() == {}
        assert _no_caller_noticed(journal)


@pytest.mark.slow
class TestWayToTheBroker:
    def test_workers_come_back_by_themselves(self, system: Cluster, journal: ClientJournal, seed: int) -> None:
        """Late, reset, then half-open: relay and worker consume again within a minute, and nobody starts them anew."""
        with FaultyProxy(system.ground.valkey.port, seed=seed) as proxy:
            crooked = {
                "MEMORYOS_BROKER_URL": system.ground.valkey.url.replace(f":{proxy.target_port}/", f":{proxy.port}/")
            }
            for name in ("one", "two", "beat"):
                system.members[name].kill(for_good=True)
            system.members["relay"].restart(**crooked)
            worker = system.members["one"].restart(**crooked).ready()
            lives = {name: system.members[name].starts for name in ("one", "relay")}
            with Traffic(system, journal, "far", turns=80, seed=seed) as traffic:
                proxy.latency_seconds = 0.2
                traffic.go_on(2.0)
                proxy.latency_seconds, proxy.reset_share = 0.0, 0.1
                traffic.go_on(4.0)
                proxy.reset_share = 0.0
                proxy.half_open()
                begun = time.monotonic()
                with system.ledger.across_tenants() as connection:
                    before = count_done(connection)

                def moves() -> bool:
                    with system.ledger.across_tenants() as connection:
                        return count_done(connection) > before + 5

                assert system.wait_until(moves, seconds=CONSUMES_AGAIN_SECONDS)
                sys.stdout.write(f"half-open: work moves again after {time.monotonic() - begun:.1f} s\n")
            system.drain(DRAIN_SECONDS)

            assert worker.is_running
            assert {name: system.members[name].starts for name in lives} == lives
            assert check(system, journal.path).wrongs() == {}
            worker.terminate()
            assert worker.wait() == 0
            system.members["relay"].kill(for_good=True)
