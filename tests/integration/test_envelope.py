"""The envelope claims, runs and records what became of each row, whatever a stage does."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from sqlalchemy import Row, text
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from memoryos_pipeline import pipeline
from memoryos_pipeline.domain.errors import ModelRefusedError, ModelUnavailableError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.ledger import complete, complete_all, owe
from memoryos_pipeline.store.publishing import reap_expired
from memoryos_pipeline.store.tenants import create_tenant
from memoryos_pipeline.store.vigilance import pause_kind, resume_kind, tallied_lately
from tests.builders import create_scope
from tests.conftest import Stack
from workers import envelope, runtime
from workers.runtime import LeaseKeeper, Runtime

Stage = Callable[[Parts, Lease], None]


@pytest.fixture
def process(stack: Stack) -> Iterator[Runtime]:
    """The runtime of a worker process over the test's database."""
    keeper = LeaseKeeper(stack.ledger, stack.ledger_database, process="worker@test", lease_seconds=60)
    embedder = HashingEmbedder()
    parts = Parts(stack.app, embedder, ExtractiveModel(embedder))
    runtime._runtime[:] = [Runtime(os.getpid(), "test", Settings(), parts, stack.ledger, stack.ledger_database, keeper)]
    yield runtime._runtime[0]
    keeper.stop()
    runtime.forget_runtime()


def _owe(stack: Stack, *kinds: WorkKind) -> list[int]:
    scope = create_scope(stack)
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(kind, f"subject-{n}", scope) for n, kind in enumerate(kinds)])
        return list(connection.execute(text("select work_id from memoryos.work order by work_id")).scalars())


def _rows(stack: Stack) -> list[Row[tuple[object, ...]]]:
    columns = "state, attempts, deferrals, last_error_class"  # rows stand in the order of their kinds: embed, summarize
    with stack.app.transaction(stack.tenant_id) as connection:
        return list(connection.execute(text(f"select {columns} from memoryos.work order by work_id")).all())


def _finish(parts: Parts, lease: Lease) -> None:
    with parts.database.transaction(lease.tenant_id) as connection:
        complete(connection, lease)


def _raise(error: Exception) -> Stage:
    def stage(_: Parts, __: Lease) -> None:
        raise error

    return stage


class TestDeliver:
    def test_a_stage_that_ends_is_done(self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        """Done is written by the stage, under its lease; a second doorbell finds nothing to do."""
        monkeypatch.setitem(pipeline.STAGES, "summarize", _finish)
        ids = _owe(stack, WorkKind.SUMMARIZE)
        envelope.deliver(ids)
        envelope.deliver(ids)

        assert _rows(stack) == [("done", 1, 0, None)]
        assert process.keeper.completed == 1

    def test_one_bad_row_does_not_stop_the_others(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failure is one row's own: it waits for its next try, the rest of the message is done."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise(ValueError("odd page")))
        monkeypatch.setitem(pipeline.STAGES, "summarize", _finish)
        envelope.deliver(_owe(stack, WorkKind.SUMMARIZE, WorkKind.EMBED))

        assert _rows(stack) == [("ready", 1, 0, "transient"), ("done", 1, 0, None)]

    def test_rows_that_can_be_done_together_are_one_transaction(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rows of one message and tenant are handed over at once, and are done at once."""
        seen: list[int] = []
        monkeypatch.setitem(pipeline.BATCHES, ("embed", "subject-0"), _finish_all(seen))
        monkeypatch.setitem(pipeline.BATCHES, ("embed", "subject-1"), pipeline.BATCHES["embed", "subject-0"])
        envelope.deliver(_owe(stack, WorkKind.EMBED, WorkKind.EMBED))

        assert (seen, _rows(stack)) == ([2], [("done", 1, 0, None)] * 2)
        assert process.keeper.completed == 2

    def test_a_batch_that_fails_is_taken_apart(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One bad row among many costs the others nothing: each is run alone, and only the bad one waits."""
        monkeypatch.setitem(pipeline.BATCHES, ("embed", "subject-0"), _raise_all)
        monkeypatch.setitem(pipeline.BATCHES, ("embed", "subject-1"), _raise_all)
        monkeypatch.setitem(pipeline.STAGES, "embed", _finish_but("subject-1"))
        envelope.deliver(_owe(stack, WorkKind.EMBED, WorkKind.EMBED))

        assert _rows(stack) == [("done", 1, 0, None), ("ready", 1, 0, "transient")]

    def test_a_paused_kind_is_not_claimed(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What still lies in the broker when a kind is paused burns no attempt; it goes on where it stopped."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _finish)
        ids = _owe(stack, WorkKind.EMBED)
        with stack.ledger_database.across_tenants() as connection:
            pause_kind(connection, "embed", paused_by="operator", reason="a bad upload")
        envelope.deliver(ids)
        paused = _rows(stack)
        with stack.ledger_database.across_tenants() as connection:
            resume_kind(connection, "embed")
        envelope.deliver(ids)

        assert (paused, _rows(stack)) == ([("ready", 0, 0, None)], [("done", 1, 0, None)])

    def test_what_was_put_off_for_a_day_is_given_up(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A deferral burns no attempt, but it grows old: after a day of nothing else somebody has to hear of it."""
        monkeypatch.setitem(pipeline.STAGES, "distill", _raise(ModelUnavailableError("overloaded")))
        ids = _owe(stack, WorkKind.DISTILL)
        envelope.deliver(ids)
        with stack.app.transaction(stack.tenant_id) as connection:
            late = "run_after = clock_timestamp(), deferred_since = deferred_since - interval '25 hours'"
            connection.execute(text(f"update memoryos.work set {late}"))
        envelope.deliver(ids)

        assert _rows(stack)[0] == ("dead", 0, 2, "deferred")
        with stack.ledger_database.across_tenants() as connection:
            reason = connection.execute(text("select error from memoryos.dead_letter")).scalar_one()
        assert reason == "put off for 25 h: ModelUnavailableError: overloaded"

    def test_how_work_ended_is_tallied(self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever decides whether a kind is broken sees outcomes by tenant and kind."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise(ValueError("odd page")))
        monkeypatch.setitem(pipeline.STAGES, "summarize", _finish)
        envelope.deliver(_owe(stack, WorkKind.SUMMARIZE, WorkKind.EMBED, WorkKind.EMBED))
        process.keeper.tally.write()

        with stack.ledger_database.across_tenants() as connection:
            found = {(each.kind, each.outcome, each.count) for each in tallied_lately(connection)}
        assert found == {("summarize", "done", 1), ("embed", "transient", 2)}

    def test_tenants_take_turns_within_a_message(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever has one row behind many of another tenant does not wait for them; what failed before comes last."""
        begun: list[str] = []

        def note(_: Parts, lease: Lease) -> None:
            begun.append(f"{lease.tenant_id == stack.tenant_id} {lease.attempts}")
            message = "poison"
            raise ValueError(message)

        monkeypatch.setitem(pipeline.STAGES, "summarize", note)
        small = Stack(**{**stack.__dict__, "tenant_id": mint_id()})
        create_tenant(stack.owner, small.tenant_id, "small")
        many = _owe(stack, *[WorkKind.SUMMARIZE] * 5)
        envelope.deliver(many[:1])
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.work set run_after = clock_timestamp()"))
        begun.clear()
        envelope.deliver([*many, *_owe(small, WorkKind.SUMMARIZE)])

        assert begun == ["False 1", "True 1", "True 1", "True 1", "True 1", "True 2"]

    def test_a_busy_model_burns_no_attempt(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A rate limit defers the row and gives the attempt back."""
        monkeypatch.setitem(pipeline.STAGES, "distill", _raise(ModelUnavailableError(retry_after_seconds=30)))
        envelope.deliver(_owe(stack, WorkKind.DISTILL))

        assert _rows(stack) == [("ready", 0, 1, "deferred")]

    def test_a_refusal_is_buried_at_once(self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        """What cannot succeed is not tried again."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise(ModelRefusedError("no")))
        envelope.deliver(_owe(stack, WorkKind.EMBED))

        assert _rows(stack)[0] == ("dead", 1, 0, "permanent")

    def test_work_of_newer_code_is_left_for_newer_workers(self, stack: Stack, process: Runtime) -> None:
        """An unknown kind is not even claimed: neither its fence nor its age moves."""
        ids = _owe(stack, WorkKind.MERGE)
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.work set kind = 'from_the_future'"))
        envelope.deliver(ids)

        assert _rows(stack) == [("ready", 0, 0, None)]

    @pytest.mark.parametrize("nonsense", [None, "1", [True], [1.5], [-1], [2**70], [{"a": 1}], [999_999]])
    def test_nonsense_has_no_effect(self, stack: Stack, process: Runtime, nonsense: object) -> None:
        """Whoever can write to the broker can ring for rows that do not exist, and nothing happens."""
        _owe(stack, WorkKind.MERGE)
        envelope.deliver(nonsense)

        assert _rows(stack) == [("ready", 0, 0, None)]

    def test_a_worker_that_was_asked_to_stop_begins_nothing(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A graceful stop frees rows at once and burns no attempt."""
        monkeypatch.setattr(envelope, "stopping", _set_event())
        envelope.deliver(_owe(stack, WorkKind.EMBED))

        assert _rows(stack) == [("ready", 0, 0, None)]

    def test_what_kills_a_process_is_given_up_alone(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A row that ends its worker every time takes none of the rows of its message along."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _die(process))
        monkeypatch.setitem(pipeline.STAGES, "summarize", _finish)
        ids = _owe(stack, WorkKind.EMBED, WorkKind.SUMMARIZE, WorkKind.SUMMARIZE, WorkKind.SUMMARIZE)
        for _ in range(2 * len(ids)):
            with contextlib.suppress(_KilledError):
                envelope.deliver(ids)
            _let_leases_run_out(stack)

        assert _rows(stack)[: len(ids)] == [("dead", 5, 0, "lease_expired"), *[("done", 1, 0, None)] * 3]

    def test_what_was_only_claimed_goes_down_with_nobody(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rows that a dead process had not begun are as they were: no attempt, no suspicion."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _die(process))
        ids = _owe(stack, WorkKind.EMBED, WorkKind.SUMMARIZE, WorkKind.SUMMARIZE)
        with pytest.raises(_KilledError):
            envelope.deliver(ids)
        _let_leases_run_out(stack)

        assert _rows(stack) == [("ready", 1, 0, "lease_expired"), *[("ready", 0, 0, None)] * 2]

    def test_what_was_only_claimed_is_taken_over_as_it_was(self, stack: Stack, process: Runtime) -> None:
        """Whoever takes it before anybody gave it back counts one attempt for both claims."""
        ids = _owe(stack, WorkKind.SUMMARIZE, WorkKind.SUMMARIZE)
        stack.ledger.claim(ids, owner="gone", lease_seconds=0, ahead=True)

        taken = stack.ledger.claim(ids, owner="next", lease_seconds=60, ahead=True)
        assert [(lease.attempts, lease.vanished, lease.begun) for lease in taken] == [(1, False, False)] * 2

    def test_a_stage_that_ends_its_process_has_failed(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It costs an attempt under its own reason, at once, and the other rows of its message are done."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise_base())
        monkeypatch.setitem(pipeline.STAGES, "summarize", _finish)
        envelope.deliver(_owe(stack, WorkKind.EMBED, WorkKind.SUMMARIZE))

        assert _rows(stack)[:2] == [("ready", 1, 0, "transient"), ("done", 1, 0, None)]
        with stack.ledger_database.across_tenants() as connection:
            reason = connection.execute(text("select last_error from memoryos.work where state = 'ready'")).scalar_one()
        assert reason.startswith("SystemExit: ")

    def test_what_vanished_for_nothing_of_its_own_is_done_at_once(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One message does all rows that went down with a worker, one after the other, none held beside another."""
        held: list[int] = []

        def finish(parts: Parts, lease: Lease) -> None:
            held.append(len(process.keeper._held))
            _finish(parts, lease)

        monkeypatch.setitem(pipeline.STAGES, "summarize", finish)
        ids = _owe(stack, *[WorkKind.SUMMARIZE] * 4)
        stack.ledger.claim(ids, owner="gone", lease_seconds=60)
        _let_leases_run_out(stack)
        envelope.deliver(ids)

        assert _rows(stack) == [("done", 2, 0, None)] * len(ids)
        assert held == [1] * len(ids)

    def test_rows_that_cannot_be_handed_back_are_not_kept_alive(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While Postgres is away their leases run out: nobody works on them, so nobody may beat for them."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise_base())
        ids = _owe(stack, WorkKind.EMBED, WorkKind.SUMMARIZE)
        monkeypatch.setattr(process.ledger, "release", _refuse)
        with pytest.raises(PoolTimeoutError):
            envelope.deliver(ids)

        assert not process.keeper._held

    def test_a_deadlock_burns_no_attempt(self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is about the database, and not about the row, never gives the row up."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _report("40P01"))
        envelope.deliver(_owe(stack, WorkKind.EMBED))

        assert _rows(stack) == [("ready", 0, 1, "deferred")]

    def test_a_statement_that_is_refused_burns_an_attempt(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the row itself asked for, and did not get in time, is tried a bounded number of times."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _report("57014"))
        envelope.deliver(_owe(stack, WorkKind.EMBED))

        assert _rows(stack) == [("ready", 1, 0, "transient")]

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (KeyError("my PIN is 4711"), "KeyError"),
            (ModelRefusedError("the provider\x00 says no"), "ModelRefusedError: the provider says no"),
        ],
    )
    def test_a_dead_letter_repeats_nothing_that_was_said(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
    ) -> None:
        """Operators of the ledger see no text of a tenant: of a foreign exception its kind is kept, not its words."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise(error))
        ids = _owe(stack, WorkKind.EMBED)
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.work set max_attempts = 1"))
        envelope.deliver(ids)

        with stack.ledger_database.across_tenants() as connection:
            assert connection.execute(text("select error from memoryos.dead_letter")).scalars().all() == [reason]

    def test_an_interrupted_worker_hands_back_what_it_has_not_begun(
        self, stack: Stack, process: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A graceful stop in the middle of a message frees the other rows at once."""
        monkeypatch.setitem(pipeline.STAGES, "embed", _raise_base())
        monkeypatch.setattr(envelope, "terminate_handler_fired", lambda: True)
        ids = _owe(stack, WorkKind.SUMMARIZE, WorkKind.EMBED)
        with pytest.raises(SystemExit):
            envelope.deliver(ids)

        assert _rows(stack)[1] == ("ready", 0, 0, None)


def _finish_all(seen: list[int]) -> pipeline.Batch:
    def batch(parts: Parts, leases: Sequence[Lease]) -> None:
        seen.append(len(leases))
        with parts.database.transaction(leases[0].tenant_id) as connection:
            complete_all(connection, leases)

    return batch


def _raise_all(parts: Parts, leases: Sequence[Lease]) -> None:
    with parts.database.transaction(leases[0].tenant_id) as connection:
        complete_all(connection, leases)
        raise ValueError("one of us is odd")


def _finish_but(odd: str) -> Stage:
    def stage(parts: Parts, lease: Lease) -> None:
        if lease.subject_key == odd:
            raise ValueError("odd page")
        _finish(parts, lease)

    return stage


def _die(process: Runtime) -> Stage:
    """A stage that ends its process the way SIGKILL does: nobody hands anything back."""

    def stage(_: Parts, __: Lease) -> None:
        process.keeper._held.clear()
        raise _KilledError

    return stage


class _KilledError(BaseException):
    """The end of a process, for whoever has only one."""


def _let_leases_run_out(stack: Stack) -> None:
    with stack.ledger_database.across_tenants() as connection:
        expire = "update memoryos.work set lease_until = clock_timestamp() - interval '1 s' where state = 'leased'"
        connection.execute(text(expire))
    with stack.ledger_database.across_tenants() as connection:
        reap_expired(connection)


def _refuse(_: object) -> None:
    raise PoolTimeoutError


def _report(sqlstate: str) -> Stage:
    """A stage whose statement ends with this code, reported by Postgres itself."""

    def stage(parts: Parts, lease: Lease) -> None:
        with parts.database.transaction(lease.tenant_id) as connection:
            connection.execute(text(f"do $$ begin raise exception 'no' using errcode = '{sqlstate}'; end $$"))

    return stage


def _set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def _raise_base() -> Stage:
    def stage(_: Parts, __: Lease) -> None:
        raise SystemExit(0)

    return stage
