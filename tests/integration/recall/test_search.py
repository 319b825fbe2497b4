"""Search finds what was said, in any language, at any age, and says why."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.recall import gather as gathering
from memoryos_pipeline.recall.search import DEGRADED_EMBEDDER, DEGRADED_NO_VECTORS, search
from memoryos_pipeline.store.tenants import create_tenant
from tests.builders_recall import FailingEmbedder, ask, know, recall_parts, remember, say, summarize
from tests.conftest import Stack

SMALL_TALK = (
    ("Companion", "That sounds lovely, tell me more whenever you like."),
    ("Maya", "The weather has been grey for days now."),
    ("Companion", "Did the new curtains arrive in the end?"),
    ("Maya", "昼休みに友達とラーメンを食べた"),
    ("Maya", "오늘은 회사에서 회의가 길었어요"),
    ("Maya", "我今天加班到很晚"),
)
SAID = {
    "en": ("My grandmother taught me to repair old violins.", "Who taught Maya to fix violins?"),
    "ja": ("昨日は近所の銭湯に行って疲れが取れた", "銭湯に行ったのはいつ？"),
    "ko": ("주말에 한강에서 자전거를 탔다", "자전거는 어디에서 탔어?"),
    "zh": ("上周在图书馆借了三本关于陶瓷的书", "我在图书馆借了什么书？"),
}


@pytest.mark.parametrize("lang", SAID)
class TestFind:
    def test_words_alone_find_it(self, stack: Stack, lang: str) -> None:
        """With the embedder away, the lexical arm puts the turn first, and the answer says it is degraded."""
        said, question = SAID[lang]
        remember(stack, *SMALL_TALK, ("Maya", said))
        found = search(recall_parts(stack, embedder=FailingEmbedder()), stack.tenant_id, ask(question))

        assert found.results[0].content == said
        assert found.results[0].features["bm25"] > 0
        assert "dense" not in found.results[0].features
        assert found.degraded == (DEGRADED_EMBEDDER,)

    def test_vectors_alone_find_it(self, stack: Stack, lang: str) -> None:
        """Without a single posting, the dense arm puts the turn first; a cosine is a similarity, not a distance."""
        said, _ = SAID[lang]
        remember(stack, *SMALL_TALK, ("Maya", said))
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("delete from memoryos.posting"))
        found = search(recall_parts(stack), stack.tenant_id, ask(said))

        assert found.results[0].content == said
        assert 0.8 < found.results[0].features["dense"] <= 1.001  # dates and names are left out of the question
        assert found.results[0].features["bm25"] == 0

    def test_a_turn_is_found_before_any_worker_ran(self, stack: Stack, lang: str) -> None:
        """A recorded turn without an index row is found at once, among indexed ones."""
        said, question = SAID[lang]
        remember(stack, *SMALL_TALK)
        say(stack, ("Maya", said), first=50, start=START_OF_TAIL)

        assert search(recall_parts(stack), stack.tenant_id, ask(question)).results[0].content == said


START_OF_TAIL = datetime(2026, 3, 9, tzinfo=UTC)


class TestLeave:
    def test_what_left_recall_stays_out_of_the_unindexed_tail(self, stack: Stack) -> None:
        """A page that could not be indexed leaves all behind it in the tail, but not what was forgotten of it."""
        say(stack, ("Maya", "My secret tattoo is a heron."), ("Maya", "My secret tattoo hurts."))
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(
                text("""
                insert into memoryos.turn_left (tenant_id, conversation_id, seq)
                select tenant_id, conversation_id, seq from memoryos.turn where seq = 1
            """)
            )
        found = search(recall_parts(stack), stack.tenant_id, ask("secret tattoo"))

        assert [result.content for result in found.results] == ["My secret tattoo hurts."]


class TestMixedScripts:
    @pytest.mark.parametrize("query", ["クラスタ", "kubernetes クラスタ", "Ｋｕｂｅｒｎｅｔｅｓ", "自転車", "도서관"])
    def test_a_script_does_not_hide_another(self, stack: Stack, query: str) -> None:
        """Mixed-script text is found by either script, in full-width forms too."""
        remember(
            stack, *SMALL_TALK, ("Maya", "Kubernetes クラスタを東京リージョンへ移した"),
            ("Maya", "自転車を買い替えた"), ("Maya", "도서관에서 책을 읽었다"),
        )  # fmt: skip
        parts = recall_parts(stack, embedder=FailingEmbedder())
        best = search(parts, stack.tenant_id, ask(query)).results[0]

        assert best.features["bm25"] > 0

    @pytest.mark.parametrize(
        "query",
        ["proj:beta", "it's", "a & b | !c", "(((", '"unclosed', "beta:*", "\\", "-x", "<->", "%", "_", "' OR 1=1 --",
         "D’Arcy", "🙂", "🙂🙂🙂", "銭", "한강", "same " * 3000],
    )  # fmt: skip
    def test_no_character_has_a_meaning_of_its_own(self, stack: Stack, query: str) -> None:
        """Query syntax of other systems, emoji, single ideographs and repeats are only text."""
        remember(stack, ("Maya", "銭湯と한강 are in one turn"))

        assert len(search(recall_parts(stack), stack.tenant_id, ask(query)).results) == 1


class TestExplain:
    def test_signals_sum_to_the_score(self, stack: Stack) -> None:
        """Every result's signals add up to its score, and the ranking is by score."""
        remember(stack, *SMALL_TALK, *(("Maya", said) for said, _ in SAID.values()))
        know(stack, "Maya's grandmother taught her to repair old violins.", seq=7)
        say(stack, ("Maya", "I want a new violin bow."), first=60)
        results = search(recall_parts(stack), stack.tenant_id, ask("Who taught Maya violins?", limit=50)).results

        assert len(results) >= 10
        assert all(abs(sum(result.signals.values()) - result.score) < 1e-9 for result in results)
        scores = [result.score for result in results]
        assert scores == sorted(scores, reverse=True)
        assert all(-0.1 <= score <= 1 for score in scores)

    def test_a_named_speaker_is_preferred_softly(self, stack: Stack) -> None:
        """Of two equal turns the named speaker's comes first, and the other one is still there."""
        remember(stack, ("Noor", "I painted a lake at sunrise."), ("Maya", "I painted a lake at sunrise."))
        results = search(recall_parts(stack), stack.tenant_id, ask("What did Maya paint?")).results

        assert [result.speaker for result in results] == ["Maya", "Noor"]
        assert results[0].signals["actor"] > 0

    def test_a_date_in_the_question_draws_turns_of_that_day(self, stack: Stack) -> None:
        """Relative dates are resolved against the given moment, in the language of the question."""
        lines = [("Maya", "Lunch was soup.")] * 5
        for n, line in enumerate(lines):
            remember(stack, line, conversation=f"c{n}", start=datetime(2026, 3, 1 + 2 * n, 12, tzinfo=UTC))
        now = datetime(2026, 3, 10, 9, tzinfo=UTC)
        for question in (
            "What was lunch 5 days ago?",
            "5日前の昼ごはんは？ lunch",
            "5일 전 lunch",
            "5天前 lunch",
        ):
            best = search(recall_parts(stack), stack.tenant_id, ask(question, now=now)).results[0]
            assert best.at.date().isoformat() == "2026-03-05", question

    def test_the_date_of_a_result_is_local(self, stack: Stack) -> None:
        """A turn said at half past midnight in Seoul is dated by Seoul's day."""
        seoul = datetime.fromisoformat("2026-03-02T00:30:00+09:00")
        remember(stack, ("Maya", "The train was late."), start=seoul)
        best = search(recall_parts(stack), stack.tenant_id, ask("train")).results[0]

        assert best.at.isoformat() == "2026-03-02T00:30:00+09:00"


class TestIndexing:
    def test_indexing_changes_no_lexical_score(self, stack: Stack) -> None:
        """A fresh turn counts into the statistics, so BM25 is the same before and after it is indexed."""
        parts = recall_parts(stack, embedder=FailingEmbedder())
        lines = (*SMALL_TALK, *(("Maya", said) for said, _ in SAID.values()))
        question = "Which violins did grandmother repair, and what of the curtains?"
        say(stack, *lines)
        before = search(parts, stack.tenant_id, ask(question, limit=50)).results
        remember(stack, *lines)
        after = search(parts, stack.tenant_id, ask(question, limit=50)).results

        scores = [{result.owner_id: result.features["bm25"] for result in found} for found in (before, after)]
        assert len(scores[0]) == len(lines)
        assert scores[0] == pytest.approx(scores[1])
        assert max(scores[0].values()) > 0

    def test_a_turn_without_index_rows_left_recall(self, stack: Stack) -> None:
        """A turn behind the indexed mark that has no index row was forgotten: it is no result and no neighbour."""
        remember(stack, ("Maya", "My locker code is 4711."), ("Maya", "The gym opens at six."))
        with stack.app.transaction(stack.tenant_id) as connection:
            for table in ("embedding", "posting", "posting_length"):
                connection.execute(
                    text(
                        f"delete from memoryos.{table} where owner_id in "
                        "(select turn_id from memoryos.turn where content like '%4711%')"
                    )
                )
        results = search(recall_parts(stack), stack.tenant_id, ask("What is my locker code? gym")).results

        assert [result.content for result in results] == ["The gym opens at six."]

    def test_vectors_of_another_model_are_named_not_compared(self, stack: Stack) -> None:
        """After a change of the embedder search goes on by words and says so."""
        remember(stack, *SMALL_TALK)

        class Newer(HashingEmbedder):
            revision = "2"

        found = search(recall_parts(stack, embedder=Newer()), stack.tenant_id, ask("curtains"))
        assert found.degraded == (DEGRADED_NO_VECTORS,)
        assert found.results[0].content == "Did the new curtains arrive in the end?"


class TestScope:
    def test_an_unknown_user_has_nothing(self, stack: Stack) -> None:
        """No memory is an empty list, not an error."""
        found = search(recall_parts(stack), stack.tenant_id, ask("anything", user_id="nobody"))

        assert (found.results, found.degraded) == ((), ())

    def test_nobody_sees_another_memory(self, stack: Stack) -> None:
        """Users of one tenant, and users of the same name in another tenant, never share a result."""
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        remember(stack, ("Maya", "My secret word is heliotrope."))
        say(stack, ("Ben", "My secret word is marigold."), user_id="ben")
        remember(stack, ("Maya", "My secret word is saffron."), tenant_id=other)
        parts = recall_parts(stack)
        seen = {
            (tenant, user): [r.content for r in search(parts, tenant, ask("secret word", user_id=user)).results]
            for tenant, user in (
                (stack.tenant_id, "maya"),
                (stack.tenant_id, "ben"),
                (other, "maya"),
                (other, "ben"),
            )
        }

        assert seen == {
            (stack.tenant_id, "maya"): ["My secret word is heliotrope."],
            (stack.tenant_id, "ben"): ["My secret word is marigold."],
            (other, "maya"): ["My secret word is saffron."],
            (other, "ben"): [],
        }

    def test_a_search_is_few_statements_and_writes_nothing(self, stack: Stack) -> None:
        """At most ten statements beside opening the two snapshots, all of them reads."""
        remember(stack, *SMALL_TALK)
        know(stack, "Maya has new curtains.", seq=3)
        parts = recall_parts(stack)
        statements: list[str] = []
        event.listen(stack.app.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
        search(parts, stack.tenant_id, ask("curtains"))

        asked = [statement for statement in statements if "set_config" not in statement]
        assert 4 <= len(asked) <= 10
        assert all(statement.lstrip().startswith(("select", "with")) for statement in asked)


class TestKnowledge:
    def test_knowledge_brings_its_source_turns(self, stack: Stack) -> None:
        """Knowledge that is no repetition stands for itself and names the turns it rests on."""
        remember(stack, *SMALL_TALK)
        knowledge = know(stack, "Curtains for the bedroom were ordered from a shop in Lyon.", seq=3)
        results = search(recall_parts(stack), stack.tenant_id, ask("Where were curtains ordered?")).results
        found = next(result for result in results if result.owner_id == knowledge)

        assert [source.client_turn_id for source in found.source_turns] == ["t3"]
        assert found.kind == "knowledge"

    def test_knowledge_that_repeats_its_turn_is_merged_into_it(self, stack: Stack) -> None:
        """One line, not two: the turn stays, and carries the knowledge's id and event date."""
        remember(stack, *SMALL_TALK, ("Maya", "I adopted a cat yesterday."))
        day = START_OF_TAIL - timedelta(days=9)
        knowledge = know(stack, "Maya: I adopted a cat yesterday.", seq=7, event_at=day)
        results = search(recall_parts(stack), stack.tenant_id, ask("When did Maya adopt a cat?")).results

        assert results[0].kind == "turn"
        assert results[0].repeats == (knowledge,)
        assert results[0].event_at == day
        assert knowledge not in {result.owner_id for result in results}

    def test_history_is_shown_only_on_request(self, stack: Stack) -> None:
        """A superseded version is left out, and with include_history it is there and marked."""
        remember(stack, *SMALL_TALK)
        current = know(stack, "Maya's home is in Kyoto near the river.", seq=2, version=2)
        old = know(
            stack,
            "Maya's home is in Osaka near the castle.",
            seq=1,
            lineage_id=current,
            superseded_by=current,
        )
        parts = recall_parts(stack)
        plain = {r.owner_id for r in search(parts, stack.tenant_id, ask("Where is home?", limit=50)).results}
        history = search(parts, stack.tenant_id, ask("Where is home?", limit=50, include_history=True)).results

        assert current in plain
        assert old not in plain
        assert {r.owner_id: r.status for r in history if r.kind == "knowledge"} == {
            current: "active",
            old: "superseded",
        }

    def test_turns_do_not_crowd_out_what_is_asked_for(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many turns are nearer, as many pages are returned as there are and were asked for."""
        monkeypatch.setattr(gathering, "DENSE_LIMIT", 4)
        remember(stack, *[("Maya", "Are the curtains blue?")] * 12)
        pages = {
            summarize(stack, text, first=n, last=n) for n, text in enumerate(("Boats.", "Trains.", "Kites."), start=1)
        }
        found = search(recall_parts(stack), stack.tenant_id, ask("Are the curtains blue?", kinds=("page",), limit=3))

        assert {result.owner_id for result in found.results} == pages

    def test_kinds_can_be_chosen(self, stack: Stack) -> None:
        """Only the kinds that were asked for are returned."""
        remember(stack, *SMALL_TALK)
        page = summarize(stack, "Curtains and grey weather were talked about.", first=1, last=6)
        know(stack, "Curtains for the bedroom were ordered from a shop in Lyon.", seq=3)
        found = search(recall_parts(stack), stack.tenant_id, ask("curtains", kinds=("page",), limit=1)).results

        assert [result.owner_id for result in found] == [page]
        assert [source.seq for source in found[0].source_turns] == [1, 2, 3, 4, 5, 6]
