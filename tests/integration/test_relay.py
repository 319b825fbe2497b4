"""The relay rings for due work, fairly and within a bound, and survives an emptied broker."""

from collections.abc import Iterator, Sequence

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as ConnectionRefused
from sqlalchemy import text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.tenants import create_tenant
from tests.builders import create_scope
from tests.conftest import Stack
from workers.relay import Relay


class Doorbell:
    """Keeps what was rung for, and can be broken."""

    def __init__(self) -> None:
        self.rung: list[tuple[str, list[int]]] = []
        self.broken = False

    def __call__(self, queue: str, work_ids: Sequence[int]) -> None:
        if self.broken:
            raise ConnectionRefused
        self.rung.append((queue, list(work_ids)))

    @property
    def ids(self) -> list[int]:
        return [each for _, ids in self.rung for each in ids]


@pytest.fixture
def broker(valkey: EmbeddedValkey) -> Iterator[Redis]:
    client = Redis.from_url(valkey.url)
    client.flushall()
    yield client
    client.close()


def _relay(stack: Stack, broker: Redis, bell: Doorbell, **settings: object) -> Relay:
    return Relay(stack.ledger_database, broker, bell, Settings(**settings), name="relay@test")  # type: ignore[arg-type]


def _owe(stack: Stack, count: int, kind: WorkKind = WorkKind.SUMMARIZE) -> None:
    scope = create_scope(stack)
    owed = [Owed(kind, f"{kind}-{number}", scope) for number in range(count)]
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, owed)


class TestTick:
    def test_due_work_is_rung_for_once(self, stack: Stack, broker: Redis) -> None:
        """Rows are published in batches on the queue of their kind, and not again while the stamp is fresh."""
        _owe(stack, 30)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)

        assert (relay.tick(), relay.tick()) == (30, 0)
        assert [(queue, len(ids)) for queue, ids in bell.rung] == [("summarize", 25), ("summarize", 5)]

    def test_the_window_bounds_what_the_broker_holds(self, stack: Stack, broker: Redis) -> None:
        """The backlog stays in Postgres."""
        _owe(stack, 30)
        bell = Doorbell()
        relay = _relay(stack, broker, bell, relay_window=10)

        assert (relay.tick(), relay.tick()) == (10, 0)

    def test_tenants_take_turns(self, stack: Stack, broker: Redis) -> None:
        """A small tenant behind a large backlog is in the first window."""
        _owe(stack, 50)
        small = mint_id()
        create_tenant(stack.owner, small, "small")
        other = Stack(**{**stack.__dict__, "tenant_id": small})
        _owe(other, 2)
        bell = Doorbell()
        _relay(stack, broker, bell, relay_window=10).tick()

        with stack.app.transaction(small) as connection:
            mine = set(connection.execute(text("select work_id from memoryos.work")).scalars())
        assert mine <= set(bell.ids)

    def test_an_emptied_broker_is_noticed(self, stack: Stack, broker: Redis) -> None:
        """After FLUSHALL everything that is ready is rung for again within a tick."""
        _owe(stack, 3)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)
        relay.tick()
        broker.flushall()

        assert relay.tick() == 3

    def test_what_the_broker_refused_is_due_again(self, stack: Stack, broker: Redis) -> None:
        """A failed publish leaves no stamp behind."""
        _owe(stack, 3)
        bell = Doorbell()
        bell.broken = True
        relay = _relay(stack, broker, bell)
        with pytest.raises(ConnectionRefused):
            relay.tick()
        bell.broken = False

        assert relay.tick() == 3

    def test_a_lease_that_ran_out_is_rung_for_again(self, stack: Stack, broker: Redis) -> None:
        """The reaper is the relay's own; it does not depend on beat."""
        _owe(stack, 1)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)
        relay.tick()
        stack.ledger.claim(bell.ids, owner="gone", lease_seconds=0)
        relay._ticks = 0

        assert relay.tick() == 1

    def test_work_that_always_kills_its_worker_is_buried(self, stack: Stack, broker: Redis) -> None:
        """Attempts are counted before running, so a poisoned row ends as a dead letter with a reason."""
        _owe(stack, 1)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)
        relay.tick()
        for _ in range(5):
            stack.ledger.claim(bell.ids, owner="gone", lease_seconds=0)
        relay._ticks = 0
        relay.tick()

        with stack.app.transaction(stack.tenant_id) as connection:
            rows = connection.execute(
                text("select w.state, d.error_class from memoryos.work w join memoryos.dead_letter d using (work_id)")
            ).all()
        assert rows == [("dead", "lease_expired")]
