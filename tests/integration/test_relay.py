"""The relay rings for due work, fairly and within a bound, and survives an emptied broker."""

import re
from collections.abc import Iterator, Sequence

import pytest
from pydantic import SecretStr
from redis import Redis
from redis.exceptions import ConnectionError as ConnectionRefused
from sqlalchemy import TextClause, text
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store import publishing
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.publishing import LANE_ROWS
from memoryos_pipeline.store.tenants import create_tenant
from memoryos_pipeline.store.vigilance import add_tallies
from tests.builders import create_scope
from tests.conftest import Stack
from workers import relay as relay_module
from workers.celery_app import build_app
from workers.relay import SUSPECTS, Relay, celery_publisher


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


def _url(broker: Redis) -> SecretStr:
    given = broker.connection_pool.connection_kwargs
    return SecretStr(f"redis://:{given['password']}@{given['host']}:{given['port']}/0")


def _indexes(stack: Stack, statement: TextClause, **values: object) -> set[str]:
    with stack.ledger_database.across_tenants() as connection:
        plan = connection.execute(text(f"explain {statement.text}"), values).scalars().all()
    assert not any("Seq Scan on work" in line for line in plan)
    return set(re.findall(r"(?:Index.* using|Bitmap Index Scan on) (\w+)", "\n".join(plan)))


def _raise_away(_: object) -> int:
    raise PoolTimeoutError


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

    def test_a_backlog_leaves_room_for_others(self, stack: Stack, broker: Redis) -> None:
        """A tenant holds a quarter of the window at most, so whoever comes later is not behind all of it."""
        _owe(stack, 50)
        bell = Doorbell()
        relay = _relay(stack, broker, bell, relay_window=40, relay_batch=5)

        assert (relay.tick(), relay.tick()) == (10, 0)

    def test_a_message_holds_rows_of_one_tenant(self, stack: Stack, broker: Redis) -> None:
        """Whoever's row ends a worker takes nothing of another tenant along."""
        small = mint_id()
        create_tenant(stack.owner, small, "small")
        for tenant_id in (stack.tenant_id, small):
            _owe(Stack(**{**stack.__dict__, "tenant_id": tenant_id}), 3)
        bell = Doorbell()
        _relay(stack, broker, bell).tick()

        with stack.app.transaction(small) as connection:
            mine = set(connection.execute(text("select work_id from memoryos.work")).scalars())
        assert sorted(len(mine & set(ids)) for _, ids in bell.rung) == [0, 3]

    def test_a_queue_that_nobody_works_does_not_fill_the_broker(self, stack: Stack, broker: Redis) -> None:
        """Stamps go stale while the messages still lie there: they are not rung for again and again, without end."""
        _owe(stack, 10)
        settings = Settings(broker_url=_url(broker), relay_window=4, relay_batch=1, relay_stale_seconds=1e-6)
        publish = celery_publisher(build_app(settings))
        relay = Relay(stack.ledger_database, broker, publish, settings, name="relay@test")
        for _ in range(20):
            relay.tick()

        assert broker.llen("mem:summarize") == 4

    def test_the_backlog_is_not_read_every_tick(self, stack: Stack, broker: Redis) -> None:
        """Counting doorbells and reaping leases cost by what is under way, not by what waits."""
        _owe(stack, 20_000)
        _relay(stack, broker, Doorbell()).tick()
        with stack.owner.across_tenants() as connection:
            connection.execute(text("analyze memoryos.work"))
        counted = _indexes(stack, publishing.IN_BROKER, kinds=["summarize"], stale_seconds=30)
        reaped = _indexes(stack, publishing.REAP, buries=True)

        suspected = _indexes(stack, publishing.SUSPECTED)

        assert counted == {"work_rung"}
        assert suspected == {"work_suspect"}
        assert reaped == {"work_leased", "work_spent", "work_pkey"}

    def test_an_emptied_broker_is_noticed(self, stack: Stack, broker: Redis) -> None:
        """After FLUSHALL everything that is ready is rung for again within a tick."""
        _owe(stack, 3)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)
        relay.tick()
        broker.flushall()

        assert relay.tick() == 3

    def test_an_emptied_broker_is_noticed_while_the_database_is_away(
        self, stack: Stack, broker: Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both come back after a power cut, the broker first: the relay that starts then still rings for everything."""
        _owe(stack, 3)
        _relay(stack, broker, Doorbell()).tick()
        broker.flushall()
        started = _relay(stack, broker, Doorbell())
        with monkeypatch.context() as away:
            away.setattr(relay_module, "forget_broker", _raise_away)
            with pytest.raises(PoolTimeoutError):
                started.tick()

        assert started.tick() == 3

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

    def test_what_went_down_with_its_worker_is_tried_alone_and_few_at_a_time(self, stack: Stack, broker: Redis) -> None:
        """Each is a message of its own, a share counts those that are being tried, and the others are not held up."""
        _owe(stack, 6)
        with stack.ledger_database.across_tenants() as connection:
            connection.execute(
                text("update memoryos.work set last_error_class = 'lease_expired' where work_id % 6 > 0")
            )
            healthy = list(
                connection.execute(text("select work_id from memoryos.work where work_id % 6 = 0")).scalars()
            )
        bell = Doorbell()
        relay = _relay(stack, broker, bell)

        assert (relay.tick(), relay.tick()) == (1 + SUSPECTS, 0)
        assert [ids for _, ids in bell.rung] == [healthy, *([each] for each in bell.ids[1:])]
        tried = stack.ledger.claim(bell.ids[1:], owner="one", lease_seconds=60)
        assert relay.tick() == 0
        stack.ledger.release(tried[:1])
        assert relay.tick() == 1

    def test_whose_rows_mostly_fail_goes_on_in_a_narrow_lane(self, stack: Stack, broker: Redis) -> None:
        """A few rows at a time, in small messages, and what is being done counts as well; nobody waits behind them."""
        _owe(stack, 30)
        with stack.ledger_database.across_tenants() as connection:
            add_tallies(connection, {(stack.tenant_id, "summarize", "transient"): 30})
        bell = Doorbell()
        relay = _relay(stack, broker, bell)

        assert relay.tick() == LANE_ROWS
        assert [len(ids) for _, ids in bell.rung] == [LANE_ROWS // 2, LANE_ROWS // 2]
        claimed = stack.ledger.claim(bell.ids, owner="one", lease_seconds=60)
        assert relay.tick() == 0
        stack.ledger.release(claimed[:3])
        assert relay.tick() == 3

    def test_a_lease_that_ran_out_is_rung_for_again(self, stack: Stack, broker: Redis) -> None:
        """The reaper is the relay's own; it does not depend on beat."""
        _owe(stack, 1)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)
        relay.tick()
        stack.ledger.claim(bell.ids, owner="gone", lease_seconds=0)
        relay._reap_due = 0.0

        assert relay.tick() == 1

    def test_work_that_always_kills_its_worker_is_buried(self, stack: Stack, broker: Redis) -> None:
        """Attempts are counted before running, so a poisoned row ends as a dead letter with a reason."""
        _owe(stack, 1)
        bell = Doorbell()
        relay = _relay(stack, broker, bell)
        relay.tick()
        for _ in range(5):
            stack.ledger.claim(bell.ids, owner="gone", lease_seconds=0)
        relay._reap_due = 0.0
        relay.tick()

        with stack.app.transaction(stack.tenant_id) as connection:
            rows = connection.execute(
                text("select w.state, d.error_class from memoryos.work w join memoryos.dead_letter d using (work_id)")
            ).all()
        assert rows == [("dead", "lease_expired")]
