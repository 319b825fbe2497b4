"""Recording turns keeps its promises on a real Postgres."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import event, text

from memoryos_pipeline.domain.errors import ContendedError, ErasedScopeError, NotFoundError, TurnConflictError
from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.domain.turns import ConversationName, NewTurn, Receipt
from memoryos_pipeline.stages.find_receipts import find_receipts
from memoryos_pipeline.stages.record_turns import MAX_TRIES, close_conversation, record_turns
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.erasure import subject_hash, subject_lock_key
from memoryos_pipeline.store.tenants import create_tenant
from tests.builders import create_scope
from tests.conftest import Stack


def _turn(client_turn_id: str, **changes: Any) -> NewTurn:
    body = {
        "user_id": "maya",
        "agent_id": "companion",
        "conversation_id": "c1",
        "client_turn_id": client_turn_id,
        "role": "user",
        "content": f"text of {client_turn_id}",
        "occurred_at": "2026-05-04T18:02:00+09:00",
    }
    return parse_turn({**body, **changes})


def _record(stack: Stack, *turns: NewTurn, database: Database | None = None) -> list[Receipt]:
    return record_turns(database or stack.app, stack.tenant_id, turns, policy=DEFAULT, max_attempts=5)


def _rows(stack: Stack, query: str) -> list[Any]:
    with stack.app.transaction(stack.tenant_id) as connection:
        return list(connection.execute(text(query)).all())


@contextmanager
def _statements(database: Database) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        seen.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield seen
    event.remove(database.engine, "before_cursor_execute", note)


class TestRecord:
    def test_receipts_carry_gapless_seq_and_one_position(self, stack: Stack) -> None:
        """A request gets consecutive numbers and one position of the event feed."""
        first = _record(stack, _turn("a"))
        more = _record(stack, _turn("b"), _turn("c"))

        assert [receipt.seq for receipt in first + more] == [1, 2, 3]
        assert more[0].position == more[1].position > first[0].position
        assert _rows(stack, "select kind, seq, amount from memoryos.event order by seq") == [
            ("turns_recorded", 1, 1.0),
            ("turns_recorded", 3, 2.0),
        ]

    def test_what_was_sent_is_what_is_stored(self, stack: Stack) -> None:
        """Text, parts, metadata, time and offset come back as they were sent, in every script."""
        said = "昨日は鎌倉の大仏を見に行きました 🏯 — 어제는 %s {0} </turn> '\"\\"
        parts = [{"type": "text", "text": said}, {"type": "image", "url": "x" * 100_000}]
        _record(stack, _turn("🏯'%", content=parts, metadata={"k": [1, 2.5, None, "é"]}, conversation_id="会話/1"))

        row = _rows(stack, "select content, parts, metadata, lang, utc_offset_minutes, occurred_at from memoryos.turn")[
            0
        ]
        assert row[:5] == (f"{said}\n[image]", parts, {"k": [1, 2.5, None, "é"]}, "ja", 540)
        assert row[5].isoformat() == "2026-05-04T09:02:00+00:00"

    @pytest.mark.parametrize("recorded_before", [0, 12, 40])
    def test_a_single_turn_takes_at_most_three_statements(self, stack: Stack, recorded_before: int) -> None:
        """New conversation, long conversation, over capacity: never more than three beside set_config."""
        if recorded_before:
            _record(stack, *(_turn(f"before-{i}") for i in range(recorded_before)))
        with _statements(stack.app) as seen:
            _record(stack, _turn("one"))

        assert len([statement for statement in seen if "set_config" not in statement]) == (3 if recorded_before else 2)

    def test_a_thousand_turns_over_conversations_are_one_request(self, stack: Stack) -> None:
        """The largest batch is stored in one go, numbered per conversation in the order it was sent."""
        turns = [_turn(f"t{i}", conversation_id=f"c{i % 7}", user_id=f"u{i % 2}") for i in range(1000)]
        receipts = _record(stack, *turns)

        assert [r.client_turn_id for r in receipts] == [t.client_turn_id for t in turns]
        assert _rows(stack, "select count(*), count(distinct conversation_id) from memoryos.turn") == [(1000, 14)]
        assert _rows(stack, GAPS) == []

    def test_work_is_owed_once_the_hot_buffer_is_over_capacity(self, stack: Stack) -> None:
        """Twelve turns stay hot; the thirteenth owes `advance` for the conversation."""
        _record(stack, *(_turn(f"t{i}") for i in range(12)))
        assert _rows(stack, "select kind from memoryos.work") == []

        _record(stack, _turn("t12"))
        assert _rows(stack, "select kind, state from memoryos.work") == [("advance", "ready")]

    def test_the_latest_turn_time_survives_a_late_old_turn(self, stack: Stack) -> None:
        """last_turn_at is the latest moment said, whatever the order of arrival."""
        _record(stack, _turn("new"))
        _record(stack, _turn("old", occurred_at="2020-01-01T00:00:00Z"))

        assert _rows(stack, "select last_turn_at::date::text from memoryos.conversation") == [("2026-05-04",)]


GAPS = """
    select conversation_id from memoryos.turn group by conversation_id
    having min(seq) <> 1 or max(seq) <> count(*)
    union
    select c.conversation_id from memoryos.conversation c
     where next_seq - 1 <> (select count(*) from memoryos.turn t where t.conversation_id = c.conversation_id)
"""


class TestRepeat:
    def test_a_repeat_gets_the_first_receipt(self, stack: Stack) -> None:
        """Same key and body: same seq and position, marked as duplicate, nothing new stored."""
        first = _record(stack, _turn("a"))[0]
        _record(stack, _turn("b"))
        again = _record(stack, _turn("a"))[0]

        assert again == first._replace(duplicate=True)
        assert _rows(stack, "select count(*) from memoryos.turn") == [(2,)]
        assert _rows(stack, GAPS) == []

    def test_another_body_is_refused_and_leaves_nothing(self, stack: Stack) -> None:
        """Same key, other body: a conflict, and the new turns beside it are not stored."""
        _record(stack, _turn("a"))
        with pytest.raises(TurnConflictError):
            _record(stack, _turn("new"), _turn("a", content="other"))

        assert _rows(stack, "select client_turn_id from memoryos.turn") == [("a",)]
        assert _rows(stack, "select count(*) from memoryos.event") == [(1,)]

    def test_a_mixed_batch_stores_only_what_is_new(self, stack: Stack) -> None:
        """Old and new turns in one batch: receipts in order, numbers without a gap."""
        _record(stack, _turn("a"), _turn("b"))
        receipts = _record(stack, _turn("c"), _turn("a"), _turn("d"), _turn("b"))

        assert [(r.client_turn_id, r.seq, r.duplicate) for r in receipts] == [
            ("c", 3, False),
            ("a", 1, True),
            ("d", 4, False),
            ("b", 2, True),
        ]
        assert _rows(stack, GAPS) == []

    def test_a_repeat_within_a_batch_is_stored_once(self, stack: Stack) -> None:
        """The second copy inside one request is a duplicate of the first; another body is a conflict."""
        receipts = _record(stack, _turn("a"), _turn("a"))

        assert [(r.seq, r.duplicate) for r in receipts] == [(1, False), (1, True)]
        with pytest.raises(TurnConflictError):
            _record(stack, _turn("b"), _turn("b", content="other"))

    def test_the_same_key_in_another_conversation_is_another_turn(self, stack: Stack) -> None:
        """A client_turn_id belongs to its conversation."""
        receipts = _record(stack, _turn("a"), _turn("a", conversation_id="c2"), _turn("a", user_id="li"))

        assert len({receipt.turn_id for receipt in receipts}) == 3

    def test_receipts_can_be_asked_for(self, stack: Stack) -> None:
        """Whoever published by the queue reads the receipt of what arrived, and nothing of what did not."""
        first = _record(stack, _turn("a"))

        name = ConversationName("maya", "companion", "c1")
        assert find_receipts(stack.app, stack.tenant_id, name, ["a", "never sent"]) == first


class TestConcurrency:
    def test_a_hundred_parallel_repeats_make_one_turn(self, stack: Stack) -> None:
        """The same key from many threads at once: one row, one seq for everybody, one not marked duplicate."""
        database = Database(stack.url("app"), pool_size=16)
        with ThreadPoolExecutor(16) as pool:
            receipts = [r[0] for r in pool.map(lambda _: _record(stack, _turn("same"), database=database), range(100))]
        database.dispose()

        assert {(receipt.seq, receipt.position) for receipt in receipts} == {(1, receipts[0].position)}
        assert sum(not receipt.duplicate for receipt in receipts) == 1
        assert _rows(stack, "select count(*) from memoryos.turn") == [(1,)]

    def test_many_requests_may_create_a_conversation_at_once(self, stack: Stack) -> None:
        """Whoever comes first creates it; the others add to it, in twenty conversations in a row."""
        database = Database(stack.url("app"), pool_size=12)
        for number in range(20):
            begin = Barrier(12)

            def write(thread: int, name: str = f"new-{number}", begin: Barrier = begin) -> int:
                begin.wait()
                return _record(stack, _turn(f"t{thread}", conversation_id=name), database=database)[0].seq

            with ThreadPoolExecutor(12) as pool:
                assert sorted(pool.map(write, range(12))) == list(range(1, 13))
        database.dispose()

    def test_a_name_that_stays_taken_is_contention(self, stack: Stack) -> None:
        """The unique key the upsert does not wait on is tried again, then told as contention, not as a fault."""
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            values = {"tenant_id": stack.tenant_id, "id": mint_id(), "scope_id": scope}
            connection.execute(SAME_NAME, values)
        with _statements(stack.app) as seen, pytest.raises(ContendedError):
            _record(stack, _turn("a"))

        assert sum("set_config" in statement for statement in seen) == MAX_TRIES

    def test_numbers_have_no_gap_under_threads_and_failures(self, stack: Stack) -> None:
        """Eight threads write two shared conversations in opposite orders, with repeats and conflicts mixed in."""
        database = Database(stack.url("app"), pool_size=8)

        def write(thread: int) -> int:
            refused = 0
            for i in range(50):
                order = ["c1", "c2"] if thread % 2 else ["c2", "c1"]
                turns = [_turn(f"{thread}-{i}", conversation_id=name) for name in order]
                _record(stack, *turns, database=database)
                _record(stack, *turns, database=database)
                try:
                    _record(stack, _turn(f"lost-{thread}-{i}"), _turn(f"{thread}-{i}", content="x"), database=database)
                except TurnConflictError:
                    refused += 1
            return refused

        with ThreadPoolExecutor(8) as pool:
            refused = list(pool.map(write, range(8)))
        database.dispose()

        assert refused == [50] * 8
        assert _rows(stack, "select count(*) from memoryos.turn") == [(800,)]
        assert _rows(stack, GAPS) == []


SAME_NAME = text("""
    insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id)
    values (:tenant_id, :id, :scope_id, 'c1')
""")


class TestErasure:
    def test_an_erased_user_is_refused(self, stack: Stack) -> None:
        """A user in the deletion ledger gets no new row of any kind; others do."""
        _erase(stack, "maya")
        with pytest.raises(ErasedScopeError):
            _record(stack, _turn("a"), _turn("b", user_id="li", conversation_id="c2"))

        assert _rows(stack, "select count(*) from memoryos.scope") == [(0,)]
        assert _record(stack, _turn("b", user_id="li"))[0].seq == 1

    def test_no_turn_slips_in_behind_an_erasure(self, stack: Stack) -> None:
        """A request that waits while its user is erased is refused when the erasure commits."""
        with ThreadPoolExecutor(1) as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                key = subject_lock_key(stack.tenant_id, "maya")
                connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": key})
                waiting = pool.submit(_record, stack, _turn("a"))
                _wait_for_a_waiter(stack)
                connection.execute(LEDGER, _ledger_values(stack, "maya"))
            with pytest.raises(ErasedScopeError):
                waiting.result()

        assert _rows(stack, "select count(*) from memoryos.turn") == [(0,)]


LEDGER = text("insert into memoryos.deletion_ledger (tenant_id, subject_hash) values (:tenant_id, :hash)")


class TestClose:
    def test_closing_owes_work_and_a_new_turn_opens_again(self, stack: Stack) -> None:
        """A closed conversation is advanced; talking on makes it an open one."""
        _record(stack, _turn("a"))
        _close(stack, "c1")
        assert _rows(stack, "select kind from memoryos.work") == [("advance",)]
        assert _rows(stack, "select closed_at is not null from memoryos.conversation") == [(True,)]

        _record(stack, _turn("b"))
        assert _rows(stack, "select closed_at is not null from memoryos.conversation") == [(False,)]

    def test_an_unknown_conversation_cannot_be_closed(self, stack: Stack) -> None:
        """Closing what does not exist is an error, not a silent success."""
        with pytest.raises(NotFoundError):
            _close(stack, "c1")


class TestTenants:
    def test_the_same_names_in_two_tenants_are_strangers(self, stack: Stack) -> None:
        """Equal users, conversations and keys of two tenants share no row and no number."""
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        mine = _record(stack, _turn("a"))[0]
        theirs = record_turns(stack.app, other, [_turn("a", content="theirs")], policy=DEFAULT, max_attempts=5)[0]

        assert mine.turn_id != theirs.turn_id
        assert (mine.seq, theirs.seq) == (1, 1)
        assert _rows(stack, "select content from memoryos.turn") == [("text of a",)]


def _close(stack: Stack, name: str) -> None:
    scope = scope_id(stack.tenant_id, "maya", "companion")
    close_conversation(stack.app, stack.tenant_id, scope_id=scope, conversation_id=name, max_attempts=5)


def _ledger_values(stack: Stack, user_id: str) -> dict[str, Any]:
    return {"tenant_id": stack.tenant_id, "hash": subject_hash(stack.tenant_id, user_id)}


def _erase(stack: Stack, user_id: str) -> None:
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(LEDGER, _ledger_values(stack, user_id))


def _wait_for_a_waiter(stack: Stack) -> None:
    waiting = text("select count(*) from pg_locks where locktype = 'advisory' and not granted")
    with stack.owner.engine.connect() as connection:
        while connection.execute(waiting).scalar_one() == 0:
            connection.rollback()
