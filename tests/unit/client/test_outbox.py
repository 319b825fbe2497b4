"""The outbox keeps turns through a restart, in order, until their receipt was read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryos_pipeline.client.outbox import Conversation, SQLiteOutbox, entry_of
from memoryos_pipeline.domain.errors import InvalidTurnError, TurnConflictError

MAYA = Conversation("maya", "default", "c")


def _body(key: str, **changes: Any) -> dict[str, Any]:
    ids = {"user_id": "maya", "conversation_id": "c", "client_turn_id": key}
    return {**ids, "role": "user", "content": f"turn {key} 안녕", "occurred_at": "2026-05-04T18:02:00Z", **changes}


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[SQLiteOutbox]:
    made = SQLiteOutbox(tmp_path / "outbox.sqlite")
    yield made
    made.close()


def _put(outbox: SQLiteOutbox, *bodies: dict[str, Any]) -> int:
    return outbox.put([entry_of(body) for body in bodies])


def _keys(outbox: SQLiteOutbox, conversation: Conversation = MAYA, limit: int = 100) -> list[str]:
    return [entry.client_turn_id for entry in outbox.waiting(conversation, limit)]


class TestPut:
    def test_turns_wait_in_the_order_they_were_put(self, outbox: SQLiteOutbox) -> None:
        """Order within a conversation is the order of put, not of keys."""
        _put(outbox, _body("2"), _body("1"))
        _put(outbox, _body("0"))

        assert _keys(outbox) == ["2", "1", "0"]
        assert _keys(outbox, limit=2) == ["2", "1"]

    def test_the_same_turn_again_is_nothing_new(self, outbox: SQLiteOutbox) -> None:
        """A caller that repeats itself after a crash does not publish twice; equal is equal as stored."""
        assert _put(outbox, _body("1")) == 1
        assert _put(outbox, _body("1", agent_id="default", metadata={})) == 0
        assert outbox.pending() == 1

    def test_another_body_under_a_waiting_key_is_refused_whole(self, outbox: SQLiteOutbox) -> None:
        """All or none: the good turns of the call are not kept either."""
        _put(outbox, _body("1"))

        with pytest.raises(TurnConflictError):
            _put(outbox, _body("2"), _body("1", content="something else"))
        assert _keys(outbox) == ["1"]

    def test_a_turn_is_checked_before_it_waits(self) -> None:
        """What the worker would drop never gets in, and the field is named."""
        with pytest.raises(InvalidTurnError) as caught:
            entry_of(_body("1", occurred_at="2026-05-04T18:02:00"))

        assert caught.value.field == "occurred_at"


class TestKeep:
    def test_what_waits_survives_a_restart(self, tmp_path: Path, outbox: SQLiteOutbox) -> None:
        """Another process that opens the file finds the same turns, bodies and counts."""
        _put(outbox, _body("1"), _body("2"))
        outbox.count_attempt(MAYA, ["1"])
        again = SQLiteOutbox(tmp_path / "outbox.sqlite")

        assert [(entry.body, entry.attempts) for entry in again.waiting(MAYA, 9)] == [(_body("1"), 1), (_body("2"), 0)]
        again.close()

    def test_only_its_owner_can_read_the_file(self, tmp_path: Path, outbox: SQLiteOutbox) -> None:
        """The file holds what people said, also beside it in the write-ahead log."""
        _put(outbox, _body("1"))

        files = [tmp_path / f"outbox.sqlite{ending}" for ending in ("", "-wal", "-shm")]
        assert [path.stat().st_mode & 0o077 for path in files] == [0, 0, 0]

    def test_conversations_come_by_their_oldest_turn(self, outbox: SQLiteOutbox) -> None:
        """No conversation starves behind a busy one."""
        _put(outbox, _body("1", conversation_id="late"), _body("1"), _body("2", conversation_id="late"))

        assert [each.conversation_id for each in outbox.conversations(10)] == ["late", "c"]
        assert len(outbox.conversations(1)) == 1


class TestSettle:
    def test_a_recorded_turn_leaves(self, outbox: SQLiteOutbox) -> None:
        """Only the named keys of the named conversation go."""
        _put(outbox, _body("1"), _body("2"), _body("1", conversation_id="other"))
        outbox.remove(MAYA, ["1"])

        assert (_keys(outbox), outbox.pending()) == (["2"], 2)

    def test_a_refused_turn_waits_no_more_but_stays_visible(self, outbox: SQLiteOutbox) -> None:
        """The reason and the body are kept until the caller discards them."""
        _put(outbox, _body("1"))
        outbox.refuse(MAYA, "1", code="erased", field=None)

        assert outbox.pending() == 0
        told = [(each.client_turn_id, each.code, each.body) for each in outbox.refusals()]
        assert told == [("1", "erased", _body("1"))]
        outbox.remove(MAYA, ["1"])
        assert outbox.refusals() == []

    def test_a_refused_turn_may_be_put_corrected(self, outbox: SQLiteOutbox) -> None:
        """A corrected body under the same key replaces the refused one."""
        _put(outbox, _body("1"))
        outbox.refuse(MAYA, "1", code="invalid_field", field="content")

        assert _put(outbox, _body("1", content="corrected")) == 1
        assert (outbox.refusals(), outbox.pending()) == ([], 1)
