"""What a statement has gathered stays with it when it is repeated, replaced, or handled by a person."""

import hashlib
from dataclasses import replace
from uuid import UUID

import pytest

from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.readmodels.views import read_knowledge
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.pin import pin_knowledge
from memoryos_pipeline.stages.record_access import record_access
from memoryos_pipeline.store.repair import repair_tenant
from tests.conftest import Stack
from tests.integration.stages.cold import DUMPS, Cold

SAID, REPLACED = "Maya: the home is Osaka", "Maya: the home is Kobe"
COLUMNS = """
    select kind, content, content_sha256, lang, actor, slot, slot_value, keywords, attributes, event_at,
           event_precision, turn_at, recorded_at, extracted_by, work_id, lineage_id, version, w0
      from memoryos.knowledge where knowledge_id = :id
"""
"""What is never written a second time, whatever happens to a statement."""
EARNED = "select pinned_at, importance, strength_days >= :strength from memoryos.knowledge where knowledge_id = :id"
SOURCES = "select seq from memoryos.knowledge_source where knowledge_id = :id order by seq"
USES = "select count(*) from memoryos.access_event where owner_id = :id"
INDEXED = """
    select e.input_sha256, array(select p.term from memoryos.posting p where p.owner_id = e.owner_id order by p.term)
      from memoryos.embedding e where e.owner_id = :id
"""


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A memory with one statement that was pinned, used and is about somebody."""
    cold = Cold(stack)
    cold.at(0)
    cold.page("home=Osaka @Ken")
    cold.work()
    held = _id(cold, SAID)
    assert pin_knowledge(cold.parts, cold.tenant_id, held, pinned=True)
    scope = scope_id(cold.tenant_id, "maya", "companion")
    owners = [("knowledge", held)]
    record_access(stack.app, cold.tenant_id, scope, retrieval_id=mint_id(), cause="cited", owners=owners)
    cold.at(2)
    cold.owe(WorkKind.HEAT, scope)
    for lease in cold.claim(WorkKind.HEAT):
        apply_heat(cold.parts, lease)
    cold.at(3)
    return cold


def _id(cold: Cold, content: str) -> UUID:
    [(found,)] = cold.rows("select knowledge_id from memoryos.knowledge where content = :content", content=content)
    return UUID(str(found))


def _earned(cold: Cold, held: UUID) -> tuple[object, ...]:
    [(strength,)] = cold.rows("select strength_days from memoryos.knowledge where knowledge_id = :id", id=held)
    return cold.rows(EARNED, id=held, strength=strength)[0]


def _matches_its_text(cold: Cold, held: UUID, content: str) -> bool:
    terms = sorted(set(lexical_terms(content, "en")))
    return cold.rows(INDEXED, id=held) == [(hashlib.sha256(content.encode()).digest(), terms)]


class TestRepeat:
    def test_only_sources_and_strength_grow(self, cold: Cold) -> None:
        """Told again: text, dates, pin, uses, kind and index rows are as they were; one more turn stands behind it."""
        held = _id(cold, SAID)
        before = cold.rows(COLUMNS, id=held), _earned(cold, held), cold.rows(USES, id=held)
        index = cold.rows(DUMPS["embedding"]), cold.rows(DUMPS["posting"])
        cold.page("home=Osaka", day=3)
        cold.work()

        assert (cold.rows(COLUMNS, id=held), _earned(cold, held), cold.rows(USES, id=held)) == before
        assert (cold.rows(DUMPS["embedding"]), cold.rows(DUMPS["posting"])) == index
        assert cold.rows(SOURCES, id=held) == [(1,), (2,)]
        assert cold.live() == [SAID]


class TestReplace:
    def test_a_successor_has_its_own_text_and_what_the_old_one_earned(self, cold: Cold) -> None:
        """Pin, weight and strength go over, the index holds the new text, and the old row reads as it always did."""
        held = _id(cold, SAID)
        columns, earned = cold.rows(COLUMNS, id=held), _earned(cold, held)
        [(strength,)] = cold.rows("select strength_days from memoryos.knowledge where knowledge_id = :id", id=held)
        cold.page("home=Kobe", day=3)
        cold.work()
        new = _id(cold, REPLACED)

        assert cold.rows(COLUMNS, id=held) == columns
        assert cold.rows(EARNED, id=new, strength=strength) == [earned]
        assert (cold.rows(SOURCES, id=held), cold.rows(SOURCES, id=new)) == ([(1,)], [(2,)])
        assert cold.rows(INDEXED, id=held) == []
        assert _matches_its_text(cold, new, REPLACED)

    def test_its_provenance_reaches_back_to_the_first_turn(self, cold: Cold) -> None:
        """One reading of the new statement tells every version, and each version tells its turns."""
        cold.page("home=Kobe", day=3)
        cold.work()
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            told = read_knowledge(connection, cold.tenant_id, _id(cold, REPLACED))

        assert told is not None
        assert [version["content"] for version in told["versions"]] == [SAID, REPLACED]
        assert [turn["content"] for turn in told["sources"]] == ["home=Kobe"]


class TestHandle:
    def test_a_pin_moves_its_end_and_nothing_else(self, cold: Cold) -> None:
        """Let go and held again by a person: its end comes and goes, all else is as it was."""
        held = _id(cold, SAID)
        before = cold.rows(COLUMNS, id=held), cold.rows(SOURCES, id=held), cold.rows(INDEXED, id=held)
        ends = "select pinned_at is null, forget_at is null from memoryos.knowledge where knowledge_id = :id"
        seen = []
        for pinned in (False, True):
            assert pin_knowledge(cold.parts, cold.tenant_id, held, pinned=pinned)
            seen += cold.rows(ends, id=held)

        assert seen == [(True, False), (False, True)]
        assert (cold.rows(COLUMNS, id=held), cold.rows(SOURCES, id=held), cold.rows(INDEXED, id=held)) == before


class TestNote:
    def test_an_index_with_its_note_is_an_index_of_its_text(self, stack: Stack) -> None:
        """Where notes are embedded with statements, nothing says that a vector is missing, and nothing owes it anew."""
        cold = Cold(stack, policy=replace(DEFAULT, ranking="a_mem", link_floor=0.1))
        cold.page("tennis with Anna in the park")
        cold.work()
        for lease in cold.claim(WorkKind.EMBED):
            embed(cold.parts, lease)
        with stack.app.transaction(cold.tenant_id) as connection:
            told = [each.sentence for each in find_violations(connection, cold.tenant_id) if "vector" in each.sentence]

        assert told == []
        assert "not indexed" not in {mended.what for mended in repair_tenant(stack.owner, cold.tenant_id)}
