"""Forgetting one statement by decision: at once, whole, and only until somebody wants it back."""

from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.forget_statement import forget_statement
from memoryos_pipeline.stages.pin import pin_knowledge
from memoryos_pipeline.stages.restore import restore_knowledge
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

INDEXED = """
    select owner_kind, owner_id from memoryos.embedding union select owner_kind, owner_id from memoryos.posting
"""
EVENTS = """
    select kind, count(*) from memoryos.event where kind in ('knowledge_forgotten', 'page_archived') group by 1
     order by 1
"""
SUMMARIZED = """
    update memoryos.page set summary = 'plays', summarized_at = now() where page_id = :page returning page_id
"""
OWE_EMBED = """
    insert into memoryos.work (tenant_id, kind, subject_key, scope_id)
    select tenant_id, 'embed', :subject, scope_id from memoryos.page where page_id = :page returning work_id
"""
ROLLUP = """
    insert into memoryos.rollup (tenant_id, scope_id, period, summary, keywords, lang, page_count, page_ids, model)
    select tenant_id, scope_id, '2026-01-01', 'plays', '{}', 'en', 1, array[page_id], 'm' from memoryos.page
     where page_id = :page returning period
"""


def _learn(cold: Cold, *turns: str, **where: object) -> UUID:
    """Distill, merge and index a page that is warm and has a summary in the index."""
    page = cold.page(*turns, **where)  # type: ignore[arg-type]
    cold.work()
    cold.rows(SUMMARIZED, page=page)
    for subject in (f"turns:{page}", f"summary:{page}"):
        cold.rows(OWE_EMBED, page=page, subject=subject)
    _embed(cold)
    return page


def _embed(cold: Cold) -> None:
    for lease in cold.claim(WorkKind.EMBED):
        embed(cold.parts, lease)


def _id(cold: Cold, content: str) -> UUID:
    [(found,)] = cold.rows("select knowledge_id from memoryos.knowledge where content = :content", content=content)
    return UUID(str(found))


def _indexed(cold: Cold) -> set[tuple[object, ...]]:
    return set(cold.rows(INDEXED))


def _holds(cold: Cold) -> bool:
    """Whether the indexes hold what may be recalled, and nothing else."""
    with cold.stack.app.transaction(cold.tenant_id) as connection:
        return not {each.invariant for each in find_violations(connection, cold.tenant_id)} & {"I5", "I12"}


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope that begins on day 0."""
    cold = Cold(stack)
    cold.at(0)
    return cold


class TestForgetStatement:
    def test_nothing_that_is_searched_says_it_any_more(self, cold: Cold) -> None:
        """The statement, the summary and the turn it is from are out of every index; another turn of the page stays."""
        page = _learn(cold, "I play the cello", "-hm")
        knowledge = _id(cold, "I play the cello")
        assert {kind for kind, _ in _indexed(cold)} == {"knowledge", "page", "turn"}

        assert forget_statement(cold.parts, cold.tenant_id, knowledge)
        assert [kind for kind, _ in _indexed(cold)] == ["turn"]
        assert cold.rows("select tier from memoryos.page where page_id = :page", page=page) == [("archived",)]
        assert not forget_statement(cold.parts, cold.tenant_id, knowledge)
        assert cold.rows(EVENTS) == [("knowledge_forgotten", 1), ("page_archived", 1)]
        assert _holds(cold)

    def test_it_comes_back(self, cold: Cold) -> None:
        """Restored and embedded, statement and turn are found again, and no invariant is broken."""
        _learn(cold, "I play the cello")
        knowledge = _id(cold, "I play the cello")
        before = {each for each in _indexed(cold) if each[0] != "page"}
        forget_statement(cold.parts, cold.tenant_id, knowledge)
        assert _indexed(cold) == set()

        assert restore_knowledge(cold.parts, cold.tenant_id, knowledge)
        _embed(cold)
        assert _indexed(cold) == before
        assert cold.live() == ["I play the cello"]
        assert _holds(cold)

    def test_a_turn_that_says_more_stays_until_all_of_it_is_forgotten(self, cold: Cold) -> None:
        """Two statements of two turns of one page: forgetting one takes its own turn alone."""
        _learn(cold, "I play the cello", "I have a cat")
        forget_statement(cold.parts, cold.tenant_id, _id(cold, "I play the cello"))
        assert sorted(str(kind) for kind, _ in _indexed(cold)) == ["knowledge", "turn"]
        forget_statement(cold.parts, cold.tenant_id, _id(cold, "I have a cat"))
        assert _indexed(cold) == set()
        assert _holds(cold)

    def test_history_goes_with_the_present_and_pins_do_not_hold_a_person_up(self, cold: Cold) -> None:
        """What was replaced is forgotten too, and cannot be forgotten alone; a pinned statement can."""
        _learn(cold, "food=ramen")
        old = _id(cold, "Maya: the food is ramen")
        _learn(cold, "food=soup", day=1)
        new = _id(cold, "Maya: the food is soup")
        with pytest.raises(NotFoundError, match="history"):
            forget_statement(cold.parts, cold.tenant_id, old)
        pin_knowledge(cold.parts, cold.tenant_id, new, pinned=True)

        assert forget_statement(cold.parts, cold.tenant_id, new)
        assert cold.rows("select distinct status from memoryos.knowledge") == [("forgotten",)]
        assert restore_knowledge(cold.parts, cold.tenant_id, new)
        rows = cold.rows("select knowledge_id, status from memoryos.knowledge")
        assert set(rows) == {(old, "superseded"), (new, "active")}

    def test_days_tell_of_it_no_more(self, stack: Stack) -> None:
        """Where the policy keeps rollups, the day of the page is written anew."""
        cold = Cold(stack, policy=Policy(rollups="daily"))
        cold.at(0)
        page = _learn(cold, "I play the cello")
        cold.rows(ROLLUP, page=page)
        forget_statement(cold.parts, cold.tenant_id, _id(cold, "I play the cello"))
        assert cold.rows("select summary from memoryos.rollup") == []

    def test_nobody_forgets_what_is_unknown(self, cold: Cold) -> None:
        """An id of nobody raises NotFoundError."""
        with pytest.raises(NotFoundError):
            forget_statement(cold.parts, cold.tenant_id, UUID(int=1))
