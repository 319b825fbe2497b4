"""What the relay sees to beside ringing: pauses, kinds of newer code, messages that went down with their worker."""

from collections.abc import Iterator, Sequence

import pytest
from redis import Redis
from sqlalchemy import text

from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store.heartbeats import beat
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.publishing import unknown_kinds
from memoryos_pipeline.store.vigilance import (
    add_tallies,
    list_alarms,
    list_paused,
    pause_kind,
    read_counters,
    resume_kind,
)
from tests.builders import create_scope, rows
from tests.conftest import Stack
from workers.relay import Relay
from workers.watch import Watch


class Rung(list[int]):
    """Keeps the ids that were rung for; the messages themselves are gone at once, as if a worker had taken them."""

    def __call__(self, _: str, work_ids: Sequence[int]) -> None:
        self.extend(work_ids)


@pytest.fixture
def broker(valkey: EmbeddedValkey) -> Iterator[Redis]:
    client = Redis.from_url(valkey.url)
    client.flushall()
    yield client
    client.close()


def _relay(stack: Stack, broker: Redis, rung: Rung) -> Relay:
    return Relay(stack.ledger_database, broker, rung, Settings(), name="relay@test")


def _owe(stack: Stack, kind: WorkKind = WorkKind.EMBED, count: int = 3) -> None:
    scope = create_scope(stack)
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(kind, f"{kind}-{n}", scope) for n in range(count)])


def _alarms(stack: Stack) -> dict[str, str]:
    with stack.ledger_database.across_tenants() as connection:
        return {each.name: each.sentence for each in list_alarms(connection)}


def _look(stack: Stack, watch: Watch, **depths: int) -> dict[str, str]:
    with stack.ledger_database.across_tenants() as connection:
        watch.look(connection, depths)
    return _alarms(stack)


class TestPause:
    def test_a_paused_kind_is_not_rung_for(self, stack: Stack, broker: Redis) -> None:
        """Its rows stay in Postgres, the alarm says how to let them go on, and resuming rings for all of them."""
        _owe(stack)
        rung = Rung()
        relay = _relay(stack, broker, rung)
        with stack.ledger_database.across_tenants() as connection:
            pause_kind(connection, "embed", paused_by="operator", reason="a bad upload")
        relay.tick()
        assert (rung, "memoryos work resume embed" in _alarms(stack)["kind_paused"]) == ([], True)

        with stack.ledger_database.across_tenants() as connection:
            resume_kind(connection, "embed")
        relay._reap_due = 0.0
        relay.tick()
        assert (len(rung), "kind_paused" in _alarms(stack)) == (3, False)

    def test_a_kind_that_fails_as_such_is_paused_until_somebody_looks(self, stack: Stack) -> None:
        """Failures beyond the limit stop the kind; resuming forgives them, so that it is not paused again at once."""
        watch = Watch(Settings())
        with stack.ledger_database.across_tenants() as connection:
            add_tallies(connection, {(stack.tenant_id, "distill", "invalid_output"): 500})
            add_tallies(connection, {(stack.tenant_id, "embed", "done"): 500})
        alarms = _look(stack, watch)
        with stack.ledger_database.across_tenants() as connection:
            paused = [(each.kind, each.paused_by) for each in list_paused(connection)]
            resume_kind(connection, "distill")

        assert paused == [("distill", "alarm")]
        assert "invalid_output" in alarms["kind_paused"]
        assert "kind_paused" not in _look(stack, watch)


class TestNewerCode:
    def test_its_rows_are_left_alone_and_told_of(self, stack: Stack, broker: Redis) -> None:
        """Rows of a kind nobody here knows are neither rung for nor touched, however long they wait; it is told."""
        _owe(stack, count=1)
        with stack.app.transaction(stack.tenant_id) as connection:
            late = "run_after = clock_timestamp() - interval '3 days'"
            connection.execute(text(f"update memoryos.work set kind = 'dream', {late}"))
        rung = Rung()
        _relay(stack, broker, rung).tick()
        claimed = stack.ledger.claim([1], owner="old code", lease_seconds=60, kinds=list(WorkKind))

        assert (rung, claimed) == ([], [])
        assert rows(stack, "select state, fence, attempts, deferrals from memoryos.work") == [("ready", 0, 0, 0)]
        assert "dream work waits for newer code" in _alarms(stack)["kind_unknown"]

    def test_looking_for_them_does_not_read_the_backlog(self, stack: Stack) -> None:
        """A step a kind: however many rows wait, the answer costs the same."""
        _owe(stack, count=200)
        with stack.ledger_database.across_tenants() as connection:
            assert unknown_kinds(connection, ["embed"]) == []
            assert unknown_kinds(connection, ["merge"]) == ["embed"]


class TestLostMessage:
    def test_what_went_down_with_its_worker_is_rung_for_again(self, stack: Stack, broker: Redis) -> None:
        """The queue is empty and the rows were not claimed: their doorbell is gone, and nobody waits half a minute."""
        _owe(stack)
        rung = Rung()
        relay = _relay(stack, broker, rung)
        relay.tick()
        _age_stamps(stack, seconds=6)
        relay.tick()

        assert sorted(rung) == sorted(rung[:3] * 2)
        with stack.ledger_database.across_tenants() as connection:
            assert read_counters(connection)["republished"] == 3

    def test_what_still_lies_there_is_not(self, stack: Stack, broker: Redis) -> None:
        """Messages that wait for a busy worker are not sent again."""
        _owe(stack)
        rung = Rung()
        relay = _relay(stack, broker, rung)
        relay.tick()
        broker.lpush("mem:embed", "a message")
        _age_stamps(stack, seconds=6)
        relay.tick()

        assert len(rung) == 3


class TestQueue:
    def test_a_queue_nobody_serves_is_told_until_somebody_does(self, stack: Stack) -> None:
        """Depth without a worker that names the queue is an alarm; one that shows up takes it back."""
        watch = Watch(Settings())
        _look(stack, watch, forget=4)
        watch._deep_since["forget"] -= 31
        alarms = _look(stack, watch, forget=4)
        beat(stack.ledger_database, "worker@test", "worker", completed=0, queues=["forget"])

        assert "memoryos worker --queues forget" in alarms["queue_unserved"]
        assert "queue_unserved" not in _look(stack, watch, forget=4)

    def test_a_silent_beat_is_told(self, stack: Stack) -> None:
        """Two periods without a sweep: beat is gone, or nobody serves its queue."""
        watch = Watch(Settings(sweep_seconds=5))
        early = _look(stack, watch)
        watch._began_at -= 11
        late = _look(stack, watch)

        assert ("beat_silent" in early, "beat_silent" in late) == (False, True)


def _age_stamps(stack: Stack, *, seconds: int) -> None:
    with stack.app.transaction(stack.tenant_id) as connection:
        age = f"enqueued_at = enqueued_at - interval '{seconds} seconds'"
        connection.execute(text(f"update memoryos.work set {age} where enqueued_at is not null"))
