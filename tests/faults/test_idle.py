"""A system with nothing to do does nothing: sweeps look, and no model is asked."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import text

from memoryos_pipeline.faults.cluster import Cluster, Ground
from memoryos_pipeline.faults.load import START, conversation
from memoryos_pipeline.store.clock import freeze_clock
from memoryos_pipeline.store.sweeps import SWEEPS
from tests.stub_server.server import StubServer

SWEEP_SECONDS = "0.25"
IDLE_HOURS = 10.0
STEP_HOURS = 0.5
SETTLED_DAYS = 60.0
ROUND_SECONDS = 30.0
DRAIN_SECONDS = 120.0

NEWEST_SLOT = text("select clock_timestamp()")
SWEPT_SINCE = text("""
    select count(distinct name) from memoryos.periodic_run where started_at > :since and owed is not null
""")
BEGUN = text("select sum(executions), sum(generation) from memoryos.work")


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A language model that counts what it is asked."""
    with StubServer() as made:
        yield made


@pytest.fixture
def system(ground: Ground, stub: StubServer) -> Iterator[Cluster]:
    """An API, a relay, a beat and a worker that asks the stub."""
    asks = {"language_model": "anthropic", "anthropic_base_url": stub.url, "sweep_seconds": SWEEP_SECONDS}
    with Cluster(ground, **asks) as cluster:
        cluster.add_api().start()
        cluster.add_relay().start()
        cluster.add_beat().start()
        cluster.add_worker("worker", ANTHROPIC_API_KEY="none").start().ready()
        cluster.members["api"].ready()
        yield cluster


def _move_clock(cluster: Cluster, *, days: float = 0.0, hours: float = 0.0) -> None:
    """Hold recorded time, and return once every sweep has looked at it and all that was owed is done."""
    with cluster.owner.across_tenants() as connection:
        freeze_clock(connection, START + timedelta(days=days, hours=hours))
    with cluster.ledger.across_tenants() as connection:
        since = connection.execute(NEWEST_SLOT).scalar_one()

    def all_have_swept() -> bool:
        with cluster.ledger.across_tenants() as connection:
            return bool(connection.execute(SWEPT_SINCE, {"since": since}).scalar_one() == len(SWEEPS))

    assert cluster.wait_until(all_have_swept, seconds=ROUND_SECONDS)
    cluster.drain(DRAIN_SECONDS)


def _begun(cluster: Cluster) -> tuple[int, int]:
    with cluster.ledger.across_tenants() as connection:
        executions, generations = connection.execute(BEGUN).one()
    return int(executions), int(generations)


@pytest.mark.slow
class TestIdle:
    def test_ten_hours_cost_nothing(self, system: Cluster, stub: StubServer) -> None:
        """Ten simulated hours with all schedules on: every sweep has looked, no work was begun, no model was asked."""
        _move_clock(system)
        with system.client() as client:
            for lang in ("ja", "ko"):
                client.add_turns(conversation(20, user=f"user-{lang}", lang=lang))
        system.drain(DRAIN_SECONDS)
        for days in (1.0, 20.0, 40.0, SETTLED_DAYS):
            _move_clock(system, days=days)
        asked, begun = stub.calls, _begun(system)

        for step in range(1, int(IDLE_HOURS / STEP_HOURS) + 1):
            _move_clock(system, days=SETTLED_DAYS, hours=step * STEP_HOURS)

        assert asked > 8
        assert stub.calls == asked
        assert _begun(system) == begun
