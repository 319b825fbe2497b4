"""Entities a question names bring the statements that name them, and those one step away, each with its share."""

from collections.abc import Iterable
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.links import Link
from memoryos_pipeline.domain.ranking import entity_spread
from memoryos_pipeline.domain.relations import Triple
from memoryos_pipeline.recall.search import search
from memoryos_pipeline.store.entities import put_mentions
from memoryos_pipeline.store.entity_walk import LINKED_LIMIT
from memoryos_pipeline.store.links import put_links
from memoryos_pipeline.store.relations import put_relations
from tests.builders_recall import START, ask, know, recall_parts, remember
from tests.conftest import Stack

NAMED = {
    "en": ("Maya's dog Biscuit sleeps a lot", "Biscuit", "What is Biscuit’s habit?"),
    "part": ("Maya met Harriet Stone", "Harriet Stone", "Has Harriet been there?"),
    "ja": ("美咲は先生をしている", "田中美咲", "美咲さんの仕事は？"),
    "ko": ("콩이는 많이 잔다", "콩이", "콩이는 요즘 어때?"),
    "zh": ("王小明喜欢下棋", "王小明", "小明最近怎么样？"),
}


def relate(stack: Stack, statement: UUID, *triples: Triple) -> None:
    """Let a statement say what is related."""
    scope = scope_id(stack.tenant_id, "maya", "companion")
    with stack.app.transaction(stack.tenant_id) as connection:
        named = {statement: [end for triple in triples for end in triple.ends]}
        put_mentions(connection, stack.tenant_id, scope, named=named)
        put_relations(connection, stack.tenant_id, scope, stated={statement: (triples, START, None)})


def owns(name: str) -> Triple:
    """Maya has something of this name."""
    return Triple("Maya", "speaker", "has", name, "thing")


def shares(stack: Stack, question: str, *, profile: str = "entities") -> dict[UUID, tuple[float, float]]:
    """Raw strength and what it gave to the score, of every statement and turn that an entity brought."""
    found = search(recall_parts(stack), stack.tenant_id, ask(question, limit=100, profile=profile)).results
    assert all(sum(each.signals.values()) == pytest.approx(each.score, abs=1e-9) for each in found)
    return {
        each.owner_id: (each.features["entity"], each.signals.get("entity", 0.0))
        for each in found
        if each.features.get("entity")
    }


class TestNamed:
    def test_a_name_is_known_in_every_language(self, stack: Stack) -> None:
        """Whole, in part, with a honorific or a particle: what names the entity and the turn it cites come up."""
        turns = remember(stack, *[("Maya", f"line {n} of nothing") for n in range(len(NAMED))])
        known = {}
        for seq, (lang, (content, name, _)) in enumerate(NAMED.items(), start=1):
            known[lang] = know(stack, content, seq=seq)
            relate(stack, known[lang], owns(name))
        for seq, (lang, (_, _, question)) in enumerate(NAMED.items()):
            found = shares(stack, question)

            assert set(found) == {known[lang], turns[seq]}, lang
            assert all(given > 0 for _, given in found.values())
            assert found[known[lang]][0] == (1.0 if lang in {"en", "ko"} else 0.8)

    def test_what_is_not_named_brings_nothing(self, stack: Stack) -> None:
        """A name inside another word, a speaker, a statement that is over: none is brought by the question."""
        remember(stack, ("Maya", "line of nothing"))
        statement = know(stack, "Maya knows Ann", seq=1)
        relate(stack, statement, owns("Ann"), owns("Leeds"))

        assert shares(stack, "What is she planning, Maya?") == {}
        assert statement in shares(stack, "Where is Leeds?")
        assert shares(stack, "Where is Leeds?", profile="default") == {}
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.knowledge set status = 'closed', retired_at = memoryos.now()"))
        assert shares(stack, "Where is Leeds?") == {}


class TestWalk:
    def test_it_goes_one_step_and_no_further(self, stack: Stack) -> None:
        """Statements of the next entity and linked statements count half; those two steps away do not count."""
        remember(stack, *[("Maya", f"line {n} of nothing") for n in range(5)])
        here, near, far, linked, other = (know(stack, f"statement {n}", seq=n + 1) for n in range(5))
        relate(stack, here, Triple("Biscuit", "pet", "lives_in", "Leeds", "place"))
        relate(stack, near, Triple("Leeds", "place", "is_in", "England", "place"))
        relate(stack, far, Triple("England", "place", "has", "rain", "thing"))
        link(stack, [Link(here, linked, "similar", 0.6, "")])
        found = {owner: strength for owner, (strength, _) in shares(stack, "How is Biscuit?").items()}

        assert {owner: found.get(owner) for owner in (here, near, far, linked, other)} == {
            here: 1.0, near: 0.5, far: None, linked: pytest.approx(0.3), other: None,
        }  # fmt: skip

    def test_what_many_share_tells_less(self, stack: Stack) -> None:
        """An entity of eleven statements is worth 0.9091 of one that only one statement has."""
        remember(stack, *[("Maya", f"line {n} of nothing") for n in range(12)])
        many = [know(stack, f"statement {n}", seq=n + 1) for n in range(11)]
        for statement in many:
            relate(stack, statement, owns("garden"))
        single = know(stack, "statement of one", seq=12)
        relate(stack, single, owns("violin"))
        found = shares(stack, "the garden and the violin")

        assert found[many[0]][1] / found[single][1] == pytest.approx(entity_spread(11))
        assert len(found) <= LINKED_LIMIT


def link(stack: Stack, links: Iterable[Link]) -> None:
    """Link statements."""
    scope = scope_id(stack.tenant_id, "maya", "companion")
    with stack.app.transaction(stack.tenant_id) as connection:
        put_links(connection, stack.tenant_id, scope, links=list(links), created_by="test")
