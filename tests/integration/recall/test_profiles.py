"""A question can be ranked as another memory would, and says whether somebody else said what is asked."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.policies_presets import policy_of
from memoryos_pipeline.domain.ranking_profiles import NAMES
from memoryos_pipeline.recall.search import search
from tests.builders_recall import ask, know, recall_parts, remember, summarize
from tests.conftest import Stack

TICKS = text("""
    with ticked as (update memoryos.scope set heat_ticks = heat_ticks + 7)
    update memoryos.page set heat = 1, heat_at = memoryos.now() - interval '1 year'
""")
LINK = text("""
    insert into memoryos.knowledge_link (tenant_id, scope_id, source_id, target_id, type, weight, reason, created_by)
    select tenant_id, scope_id, knowledge_id, :target, 'similar', 0.8, 'marathon', 'test'
      from memoryos.knowledge where knowledge_id = :source
""")
TALK = (
    ("Maya", "I finished the marathon in four hours."),
    ("Leo", "How was your marathon, did it rain?"),
    ("Leo", "I baked a lemon cake for the neighbours."),
    ("Maya", "The violin lesson was cancelled again."),
)


class TestProfile:
    def test_every_profile_answers(self, stack: Stack) -> None:
        """Each ranks the same memory by its own signals, best first, and explains its scores."""
        remember(stack, *TALK)
        know(stack, "Maya ran a marathon in four hours", seq=1)
        for name in NAMES:
            found = search(recall_parts(stack), stack.tenant_id, ask("the marathon", profile=name)).results
            scores = [result.score for result in found]

            assert "marathon" in found[0].content, name
            assert scores == sorted(scores, reverse=True)
            assert all(sum(result.signals.values()) == pytest.approx(result.score) for result in found)
        assert set(found[0].signals) == {"bm25"}, "the last profile ranks by words alone"

    def test_a_policy_names_the_profile(self, stack: Stack) -> None:
        """Without a word in the question the policy in force decides; a question's own word goes first."""
        remember(stack, *TALK)
        parts = recall_parts(stack)
        like_mem0 = type(parts)(
            parts.database, parts.embedder, parts.language_model, policy_of("default", {"ranking": "mem0"})
        )
        by_policy = search(like_mem0, stack.tenant_id, ask("the marathon")).results
        by_word = search(like_mem0, stack.tenant_id, ask("the marathon", profile="default")).results

        assert set(by_policy[0].signals) == {"dense"}
        assert {"dense", "bm25"} <= set(by_word[0].signals)


class TestHeat:
    def test_a_page_is_as_warm_as_its_own_clock_says(self, stack: Stack) -> None:
        """By tick a year takes nothing and seven ticks half; by time it is the other way round."""
        remember(stack, *TALK)
        page = summarize(stack, "A week of marathon and cake.", last=4)
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(TICKS)
        warmth = {}
        for law in ("ema_tick", "ema_time"):
            parts = replace(recall_parts(stack), policy=policy_of("seed000", {"heat": law}))
            found = search(parts, stack.tenant_id, ask("the marathon", kinds=("page",))).results
            warmth[law] = {result.owner_id: result.features["vitality"] for result in found}[page]

        assert warmth["ema_tick"] == pytest.approx(0.9**7)
        assert warmth["ema_time"] < 1e-9


class TestLinks:
    def test_what_a_hit_is_linked_to_comes_along(self, stack: Stack) -> None:
        """A-Mem follows the links of its best statements one step; nobody else does, and forgetting is not undone."""
        remember(stack, *TALK)
        hits = [know(stack, f"marathon number {n} in four hours", seq=1) for n in range(10)]
        friend, stranger, gone = (
            know(stack, content, seq=3, **more)
            for content, more in (
                ("a lemon cake was baked", {}),
                ("a lesson was cancelled", {}),
                ("a pie was baked", {"superseded_by": hits[0]}),
            )
        )
        with stack.app.transaction(stack.tenant_id) as connection:
            for target in (friend, gone):
                connection.execute(LINK, {"source": hits[0], "target": target})
        found = {}
        for name in ("a_mem", "default"):
            asked = ask("marathon", profile=name, kinds=("knowledge",), limit=50)
            found[name] = {each.owner_id: each for each in search(recall_parts(stack), stack.tenant_id, asked).results}
        lifted, seed = found["a_mem"][friend], found["a_mem"][hits[0]]

        assert lifted.score == pytest.approx(max(0.8 * seed.score, lifted.score - lifted.signals["link"]))
        assert sum(lifted.signals.values()) == pytest.approx(lifted.score)
        assert lifted.score > found["a_mem"][stranger].score
        assert "link" not in found["a_mem"][stranger].signals
        assert gone not in found["a_mem"]
        assert all("link" not in each.signals for each in found["default"].values())


class TestNotSaid:
    def test_the_wrong_person_is_doubted(self, stack: Stack) -> None:
        """Asked about Leo's marathon the memory says it heard of it from others only; about Maya's it does not."""
        remember(stack, *TALK)
        wrong, right, nobody = (
            search(recall_parts(stack), stack.tenant_id, ask(question)).not_said
            for question in ("When did Leo run the marathon?", "When did Maya run the marathon?", "Who ran?")
        )

        assert wrong is not None
        assert (wrong.actor, wrong.doubt) == ("leo", 1.0)
        assert right is not None
        assert right.doubt == -1.0
        assert nobody is None
