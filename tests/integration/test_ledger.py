"""The ledger keeps its promises on a real Postgres."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryos_pipeline.domain.errors import FencedError
from memoryos_pipeline.domain.work import Lease, Owed, RetryDecision, WorkKind
from memoryos_pipeline.store.ledger import complete, hold, owe, owe_once
from tests.builders import create_scope, rows, wait_for_a_waiter
from tests.conftest import Stack


def _owe(stack: Stack, subject: str = "one") -> None:
    scope = create_scope(stack)
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, subject, scope)])


def _claim(stack: Stack, lease_seconds: float = 60) -> list[Lease]:
    with stack.ledger_database.across_tenants() as connection:
        ids = connection.exec_driver_sql("select work_id from memoryos.work").scalars().all()
    return stack.ledger.claim(ids, owner="test", lease_seconds=lease_seconds)


class TestClaim:
    def test_a_row_is_claimed_once(self, stack: Stack) -> None:
        """Two workers with the same doorbell: one gets the row, the other nothing."""
        _owe(stack)

        assert [lease.attempts for lease in _claim(stack)] == [1]
        assert _claim(stack) == []

    def test_an_expired_lease_is_claimed_again_with_a_higher_fence(self, stack: Stack) -> None:
        """A lease that ran out belongs to the next worker, and the attempt counts."""
        _owe(stack)
        first = _claim(stack, lease_seconds=0)[0]
        second = _claim(stack)[0]

        assert (second.fence, second.attempts) == (first.fence + 1, 2)

    def test_a_row_that_is_being_owed_again_is_waited_for(self, stack: Stack) -> None:
        """Its doorbell was taken from the broker already: passing it over would leave it lying for a stale stamp."""
        _owe(stack)
        _owe(stack, "free")
        scope = create_scope(stack)
        with ThreadPoolExecutor() as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                owe(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, "one", scope)])
                claiming = pool.submit(_claim, stack)
                wait_for_a_waiter(stack)

            assert [(lease.subject_key, lease.generation) for lease in claiming.result(10)] == [("one", 2), ("free", 1)]

    def test_a_row_that_stays_locked_holds_up_nobody(self, stack: Stack) -> None:
        """A claim waits a bounded time; what else its message named is worked on."""
        _owe(stack)
        _owe(stack, "free")
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, "one", scope)])

            assert [lease.subject_key for lease in _claim(stack)] == ["free"]


class TestComplete:
    def test_a_late_worker_is_fenced(self, stack: Stack) -> None:
        """Completing under an old fence raises, so the effect beside it is rolled back."""
        _owe(stack)
        late = _claim(stack, lease_seconds=0)[0]
        _claim(stack)

        with pytest.raises(FencedError), stack.app.transaction(stack.tenant_id) as connection:
            complete(connection, late)

    def test_a_wake_up_during_work_is_not_lost(self, stack: Stack) -> None:
        """A generation raised while the row was leased makes it ready again on completion."""
        _owe(stack)
        lease = _claim(stack)[0]
        _owe(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            complete(connection, lease)

        assert [again.generation for again in _claim(stack)] == [2]

    def test_done_work_owed_once_stays_done(self, stack: Stack) -> None:
        """Work that is done once per subject is not re-created."""
        _owe(stack)
        lease = _claim(stack)[0]
        with stack.app.transaction(stack.tenant_id) as connection:
            complete(connection, lease)
            owe_once(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, "one", lease.scope_id)])

        assert _claim(stack) == []


class TestBeat:
    def test_a_row_that_is_locked_does_not_stop_the_others(self, stack: Stack) -> None:
        """One lease is in the hands of a stage: the others are extended, and none is taken for lost."""
        for subject in ("busy", "free"):
            _owe(stack, subject)
        leases = _claim(stack, lease_seconds=5)
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, "busy", scope)])
            held = stack.ledger.beat(leases, lease_seconds=600)

        assert held == {lease.work_id for lease in leases}
        query = "select subject_key from memoryos.work where lease_until > clock_timestamp() + interval '1 minute'"
        assert rows(stack, query) == [("free",)]

    def test_a_stage_that_owes_a_row_of_its_own_process_goes_on(self, stack: Stack) -> None:
        """Owing one leased row and then completing another never deadlocks with the beat for both."""
        for subject in ("one", "two"):
            _owe(stack, subject)
        leases = _claim(stack)
        own, other = leases
        with ThreadPoolExecutor() as pool, stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, other.subject_key, own.scope_id)])
            assert pool.submit(stack.ledger.beat, leases, lease_seconds=60).result(5)
            complete(connection, own)

    def test_a_lost_lease_is_told(self, stack: Stack) -> None:
        """Whoever is fenced learns it at the next beat."""
        _owe(stack)
        late = _claim(stack, lease_seconds=0)
        now = _claim(stack)

        assert stack.ledger.beat(late, lease_seconds=60) == set()
        assert stack.ledger.beat(now, lease_seconds=60) == {now[0].work_id}


class TestHold:
    def test_progress_forgives_what_was_tried_before(self, stack: Stack) -> None:
        """Long work is given up for standing still, not for having stumbled five times on a long way."""
        _owe(stack)
        for _ in range(4):
            _claim(stack, lease_seconds=0)
        last = _claim(stack)[0]
        with stack.app.transaction(stack.tenant_id) as connection:
            hold(connection, last)
        given_up = RetryDecision(dead=True, delay_seconds=0, burns_attempt=True)
        stack.ledger.fail(last, given_up, error_class="transient", error="stumbled")

        assert last.attempts == last.max_attempts
        again = _claim(stack)
        assert [lease.attempts for lease in again] == [2]
        stack.ledger.fail(again[0], given_up, error_class="transient", error="stood still")
        assert rows(stack, "select state from memoryos.work") == [("dead",)]


class TestFail:
    def test_dead_work_keeps_its_reason(self, stack: Stack) -> None:
        """A row that is given up leaves a dead letter."""
        _owe(stack)
        lease = _claim(stack)[0]
        decision = RetryDecision(dead=True, delay_seconds=0, burns_attempt=True)
        stack.ledger.fail(lease, decision, error_class="permanent", error="why")

        with stack.app.transaction(stack.tenant_id) as connection:
            reasons = connection.exec_driver_sql("select error from memoryos.dead_letter").scalars().all()
        assert reasons == ["why"]

    def test_a_deferral_burns_no_attempt(self, stack: Stack) -> None:
        """A rate limit gives the attempt back."""
        _owe(stack)
        lease = _claim(stack)[0]
        decision = RetryDecision(dead=False, delay_seconds=0, burns_attempt=False)
        stack.ledger.fail(lease, decision, error_class="deferred", error="later")

        assert [again.attempts for again in _claim(stack)] == [1]

    def test_asking_again_does_not_cut_the_pause_short(self, stack: Stack) -> None:
        """A rate limit is kept to, and five tries are not burnt in a moment, however often the work is owed."""
        _owe(stack)
        decision = RetryDecision(dead=False, delay_seconds=60, burns_attempt=True)
        stack.ledger.fail(_claim(stack)[0], decision, error_class="transient", error="later")
        _owe(stack)

        assert _claim(stack) == []
        assert rows(stack, "select generation from memoryos.work") == [(2,)]

    def test_a_planned_delay_is_cut_short_by_asking(self, stack: Stack) -> None:
        """What was only put off is wanted now."""
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.ADVANCE, "one", scope, delay_seconds=60)])
        _owe(stack)

        assert len(_claim(stack)) == 1


class TestTenants:
    def test_the_app_role_sees_nothing_without_a_tenant(self, stack: Stack) -> None:
        """Row level security is forced: no tenant, no rows."""
        _owe(stack)
        with stack.app.across_tenants() as connection:
            assert connection.exec_driver_sql("select count(*) from memoryos.work").scalar_one() == 0
