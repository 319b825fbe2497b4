"""A decision about a contradiction is kept with both statements, and can be taken back to the exact earlier rows."""

from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.undoing import CannotUndoError
from memoryos_pipeline.readmodels.verdicts import Filter, list_verdicts, read_verdict
from memoryos_pipeline.stages.undo_verdict import undo_verdict
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

ROWS = """
    select content, lineage_id, version, slot, status, valid_from, valid_to, superseded_by, close_reason, importance,
           strength_days, last_reinforced_at, forget_at, pinned_at, retired_at is null
      from memoryos.knowledge where content like :like order by content
"""
LAST = "select verdict_id from memoryos.verdict where decision = :decision order by decided_at desc, verdict_id limit 1"


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope in which a city was named and replaced."""
    return Cold(stack)


def _told(cold: Cold, *pages: tuple[float, str]) -> None:
    for day, said in pages:
        cold.page(said, day=day)
        cold.work()


def _last(cold: Cold, decision: str = "UPDATE") -> UUID:
    found: UUID = cold.rows(LAST, decision=decision)[0][0]
    return found


def _undo(cold: Cold, verdict_id: UUID) -> UUID:
    return undo_verdict(cold.parts, cold.tenant_id, verdict_id)


class TestUndo:
    def test_the_earlier_row_is_exactly_as_it_was_and_the_new_one_stands_beside_it(self, cold: Cold) -> None:
        """Both statements are live, the older one to the last column; and it is owed to be indexed again."""
        _told(cold, (0, "city=Leeds"))
        before = cold.rows(ROWS, like="%Leeds%")
        _told(cold, (9, "city=Bristol"))
        _undo(cold, _last(cold))

        assert cold.rows(ROWS, like="%Leeds%") == before
        assert cold.live() == ["Maya: the city is Bristol", "Maya: the city is Leeds"]
        owed = cold.rows("select count(*) from memoryos.work where kind = 'embed' and subject_key like 'knowledge:%'")
        assert owed == [(1,)]

    def test_undoing_the_undo_brings_the_decision_back(self, cold: Cold) -> None:
        """Every row is again what the decision made of it, and what is retired is in no index."""
        _told(cold, (0, "city=Leeds"), (9, "city=Bristol"))
        decided = cold.rows(ROWS, like="%city%")
        _undo(cold, _undo(cold, _last(cold)))

        assert cold.rows(ROWS, like="%city%") == decided
        indexed = cold.rows("select count(*) from memoryos.embedding where owner_kind = 'knowledge'")
        assert indexed == [(1,)]

    def test_it_is_refused_when_a_later_decision_stands_on_it(self, cold: Cold) -> None:
        """The latest goes first; after that the earlier one can be undone too."""
        _told(cold, (0, "city=Leeds"), (9, "city=Bristol"))
        first = _last(cold)
        _told(cold, (20, "city=Ghent"))
        before = cold.dump()
        with pytest.raises(CannotUndoError, match="later decision"):
            _undo(cold, first)
        assert cold.dump() == before

        [latest] = [row[0] for row in cold.rows("select verdict_id from memoryos.verdict where undone_at is null")
                    if row[0] != first]  # fmt: skip
        _undo(cold, latest)
        _undo(cold, first)
        assert "Maya: the city is Leeds" in cold.live()

    def test_once_is_enough(self, cold: Cold) -> None:
        """A decision that was undone is not undone again."""
        _told(cold, (0, "city=Leeds"), (9, "city=Bristol"))
        verdict = _last(cold)
        _undo(cold, verdict)
        with pytest.raises(CannotUndoError, match="already"):
            _undo(cold, verdict)

    def test_a_statement_taken_for_known_is_no_source_any_more(self, cold: Cold) -> None:
        """Undoing a NOOP takes the turn away from the row it was counted for, and its strength with it."""
        cold.at(0)
        _told(cold, (0, "city=Leeds"))
        before = cold.rows(ROWS, like="%Leeds%")
        cold.at(2)
        _told(cold, (9, "city=Leeds"))
        assert cold.rows("select count(*) from memoryos.knowledge_source") == [(2,)]
        _undo(cold, _last(cold, "NOOP"))

        assert cold.rows("select count(*) from memoryos.knowledge_source") == [(1,)]
        assert cold.rows(ROWS, like="%Leeds%") == before

    def test_what_does_not_exist_is_not_undone(self, cold: Cold) -> None:
        """An unknown id is said to be unknown."""
        with pytest.raises(NotFoundError):
            _undo(cold, mint_id())


class TestLedger:
    def test_a_decision_is_read_with_both_statements_and_who_decided(self, cold: Cold) -> None:
        """List and single reading agree; nothing of another tenant is in them."""
        _told(cold, (0, "city=Leeds"), (9, "city=Bristol"))
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            [row] = list_verdicts(connection, cold.tenant_id, Filter(user_id="maya", decision="UPDATE"), limit=10)
            one = read_verdict(connection, cold.tenant_id, row["verdict_id"])
            none = list_verdicts(connection, cold.tenant_id, Filter(user_id="someone else"), limit=10)
            foreign = connection.execute(text("select count(*) from memoryos.verdict where tenant_id <> :t"),
                                         {"t": cold.tenant_id}).scalar_one()  # fmt: skip

        assert (one, none, foreign) == (row, [], 0)
        assert (row["old_content"], row["new_content"]) == ("Maya: the city is Leeds", "Maya: the city is Bristol")
        assert (row["decided_by"], row["can_be_undone"]) == ("scripted/1", True)
        assert row["evidence"]["page_id"]
