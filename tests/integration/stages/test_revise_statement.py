"""Revising one statement by decision: it says something else, what it said is history, and it can be taken back."""

from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import AlreadyKnownError, NotFoundError
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.pin import pin_knowledge
from memoryos_pipeline.stages.revise_statement import revise_statement
from memoryos_pipeline.stages.undo_verdict import undo_verdict
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

ROW = """
    select content, status, version, superseded_by, pinned_at is not null, extracted_by from memoryos.knowledge
     order by version
"""
SOURCES = "select conversation_id, seq, page_id from memoryos.knowledge_source where knowledge_id = :id order by seq"
INDEXED = "select distinct owner_id from memoryos.posting where owner_kind = 'knowledge'"
EVENTS = "select kind, subject_id, related_id from memoryos.event where kind like 'knowledge_%' order by event_id"
REVISIONS = {
    "en": ("I play the cello", "Maya plays the viola"),
    "ja": ("チェロを弾いています", "マヤはビオラを弾いている"),
    "ko": ("첼로를 켜요", "마야는 비올라를 켠다"),
    "zh": ("我在拉大提琴", "玛雅在拉中提琴"),
}


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope that begins on day 0."""
    cold = Cold(stack)
    cold.at(0)
    return cold


def _learn(cold: Cold, *turns: str, day: float = 0) -> UUID:
    cold.page(*turns, day=day)
    cold.work()
    [(found,)] = cold.rows(
        "select knowledge_id from memoryos.knowledge where status = 'active' order by turn_at limit 1"
    )
    return UUID(str(found))


def _embed(cold: Cold) -> None:
    for lease in cold.claim(WorkKind.EMBED):
        if lease.subject_key.startswith("knowledge:"):
            embed(cold.parts, lease)


def _broken(cold: Cold) -> set[str]:
    """What is wrong, but for the work on pages that this past never had."""
    with cold.stack.app.transaction(cold.tenant_id) as connection:
        found = {each.invariant for each in find_violations(connection, cold.tenant_id)}
    return found - {"I7", "I8"}


class TestReviseStatement:
    @pytest.mark.parametrize("lang", REVISIONS)
    def test_it_says_something_else_and_remembers_what_it_said(self, cold: Cold, lang: str) -> None:
        """The new words stand in the old line, with its turns and its pin; they are indexed, the old ones are not."""
        said, revised = REVISIONS[lang]
        old = _learn(cold, said)
        pin_knowledge(cold.parts, cold.tenant_id, old, pinned=True)
        cold.at(3)
        new = revise_statement(cold.parts, cold.tenant_id, old, revised)
        _embed(cold)

        [before, after] = cold.rows(ROW)
        assert before[1:4] == ("superseded", 1, new.knowledge_id)
        assert after == (revised, "active", 2, None, True, "person")
        assert cold.rows(SOURCES, id=new.knowledge_id) == cold.rows(SOURCES, id=old) != []
        assert cold.rows(INDEXED) == [(new.knowledge_id,)]
        assert cold.rows(EVENTS)[-2:] == [
            ("knowledge_added", new.knowledge_id, None), ("knowledge_superseded", old, new.knowledge_id)
        ]  # fmt: skip
        assert _broken(cold) == set()

    def test_it_can_be_taken_back_and_done_again(self, cold: Cold) -> None:
        """Undone, the old words hold as they did and the new ones are gone; the same revision makes a third version."""
        old = _learn(cold, "I play the cello")
        revised = revise_statement(cold.parts, cold.tenant_id, old, "Maya plays the viola")
        assert revised.verdict_id is not None
        undo_verdict(cold.parts, cold.tenant_id, revised.verdict_id)
        _embed(cold)

        assert cold.live() == ["I play the cello"]
        assert cold.rows(INDEXED) == [(old,)]
        again = revise_statement(cold.parts, cold.tenant_id, old, "Maya plays the viola")
        _embed(cold)
        assert cold.live() == ["Maya plays the viola"]
        assert again.knowledge_id not in {old, revised.knowledge_id}
        assert [row[2] for row in cold.rows(ROW)] == [1, 2, 3]
        assert _broken(cold) == set()

    def test_the_same_words_change_nothing(self, cold: Cold) -> None:
        """Nor does a revision sent twice make two versions."""
        old = _learn(cold, "I play the cello")
        assert revise_statement(cold.parts, cold.tenant_id, old, " i  PLAY the cello").verdict_id is None
        new = revise_statement(cold.parts, cold.tenant_id, old, "Maya plays the viola")
        again = revise_statement(cold.parts, cold.tenant_id, old, "Maya plays the viola")
        assert (again.knowledge_id, again.verdict_id) == (new.knowledge_id, None)
        with pytest.raises(NotFoundError, match="history"):
            revise_statement(cold.parts, cold.tenant_id, old, "Maya plays the harp")
        assert revise_statement(cold.parts, cold.tenant_id, new.knowledge_id, "Maya plays the viola").verdict_id is None
        assert len(cold.rows(ROW)) == 2

    def test_what_another_statement_says_is_refused(self, cold: Cold) -> None:
        """Two live statements never say the same."""
        first = _learn(cold, "I play the cello", "I have a cat")
        [other] = [content for content in cold.live() if "cat" in content]
        with pytest.raises(AlreadyKnownError):
            revise_statement(cold.parts, cold.tenant_id, first, other)
        assert len(cold.live()) == 2

    def test_a_later_turn_changes_what_a_person_wrote(self, cold: Cold) -> None:
        """The revision is told at its own moment: what is told after it wins, what was told before it does not."""
        old = _learn(cold, "food=ramen", day=0)
        cold.at(5)
        revise_statement(cold.parts, cold.tenant_id, old, "Maya: the food is curry")
        cold.page("food=soup", day=2)
        cold.work()
        assert cold.live() == ["Maya: the food is curry"]
        cold.at(9)
        cold.page("food=rice", day=8)
        cold.work()
        assert cold.live() == ["Maya: the food is rice"]
        assert _broken(cold) == set()

    def test_nobody_revises_what_is_unknown(self, cold: Cold) -> None:
        """An id of nobody raises NotFoundError."""
        with pytest.raises(NotFoundError):
            revise_statement(cold.parts, cold.tenant_id, UUID(int=1), "something")
