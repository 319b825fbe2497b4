"""Kinds of faults that other memories were reported for, in searching and in languages, do not happen here."""

import math
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from memoryos_pipeline.domain.errors import ModelError
from memoryos_pipeline.domain.question_dates import without_dates
from memoryos_pipeline.domain.work import Lease, WorkKind
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.protocols import Embedded
from memoryos_pipeline.recall.search import search
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.parts import Parts
from tests.builders import claim_due, close, numbered, record, rows
from tests.builders_recall import FailingEmbedder, TalkingModel, ask, recall_parts, remember
from tests.conftest import Stack
from tests.integration.api.test_recall import client_of

STORED = {
    "en": "Kubernetes クラスタを東京リージョンへ移した",
    "ja": "昨日は近所の銭湯に行った",
    "ko": "주말에 한강에서 자전거를 탔다",
    "zh": "上周在图书馆借了三本书",
}
UNRELATED = ("The soup was cold.", "夕飯はカレーだった", "회의가 길었다", "今天下雨了")
ASKED = {
    "ja": ("銭湯", "近所の銭湯"),
    "ko": ("자전거", "자전거는", "한강"),
    "zh": ("图书馆", "借书"),
    "en": ("クラスタ", "kubernetes クラスタ", "Ｋｕｂｅｒｎｅｔｅｓ", "kubernetes"),
}


class ShortEmbedder(HashingEmbedder):
    """Returns one vector too few."""

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        return super().embed_passages(texts)[:-1]


class ChokingEmbedder(HashingEmbedder):
    """Fails over one text."""

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        if any("poison" in each for each in texts):
            raise ModelError
        return super().embed_passages(texts)


class TestRetrieve:
    def test_a_small_memory_beside_a_large_one_is_whole(self, stack: Stack) -> None:
        """Thirty memories beside three hundred of the same theme: always as many as were asked for and are there."""
        remember(stack, *(("Maya", f"my garden, bed {n}") for n in range(300)), user_id="other")
        remember(stack, *(("Maya", f"my garden, pot {n}") for n in range(30)))
        for limit in (1, 20, 30, 100):
            for kinds in (("turn",), ("turn", "knowledge", "page")):
                found = search(recall_parts(stack), stack.tenant_id, ask("the garden", limit=limit, kinds=kinds))
                assert len(found.results) == min(limit, 30)
                assert all("pot" in result.content for result in found.results)

    def test_the_exact_text_comes_first(self, stack: Stack) -> None:
        """With and without vectors; scores are finite, higher is better, and dropping low ones drops the worst."""
        remember(stack, *(("Maya", said) for said in (*STORED.values(), *UNRELATED)))
        for embedder in (HashingEmbedder(), FailingEmbedder()):
            for said in (*STORED.values(), *UNRELATED):
                results = search(recall_parts(stack, embedder=embedder), stack.tenant_id, ask(said, limit=50)).results
                scores = [result.score for result in results]

                assert results[0].content == said
                assert scores == sorted(scores, reverse=True)
                assert all(math.isfinite(score) and -0.1 <= score <= 1 for score in scores)

    def test_by_vectors_alone_it_comes_first_too(self, stack: Stack) -> None:
        """By cosine only the very text wins, with about 1 where no date, which ranks by itself, is left out of it."""
        remember(stack, *(("Maya", said) for said in (*STORED.values(), *UNRELATED)))
        for said in (*STORED.values(), *UNRELATED):
            found = search(recall_parts(stack), stack.tenant_id, ask(said, limit=50, profile="mem0_v1"))
            first, *others = found.results

            assert first.content == said
            assert without_dates(said) != said or first.score == pytest.approx(1.0, abs=0.01)
            assert all(-1.0 <= other.score < first.score for other in others)

    def test_one_text_that_cannot_be_embedded_costs_its_page_time(self, stack: Stack) -> None:
        """Its page waits and is counted, the pages beside it do not; words find all of it, and later vectors too."""
        close(stack, record(stack, *numbered(7), "poison for the embedder", *numbered(7, first=9)))
        advance(_parts(stack, HashingEmbedder()), claim_due(stack, WorkKind.ADVANCE)[0])
        outcomes = [_embed_or_not(stack, lease) for lease in claim_due(stack, WorkKind.EMBED)]
        word = search(recall_parts(stack), stack.tenant_id, ask("poison", limit=1)).results[0]
        waiting = rows(stack, "select count(*) from memoryos.work where kind = 'embed' and state = 'ready'")
        for lease in claim_due(stack, WorkKind.EMBED):
            embed(_parts(stack, HashingEmbedder()), lease)
        own = """select count(*) from memoryos.embedding e join memoryos.turn t on t.turn_id = e.owner_id
                  where e.input_sha256 = sha256(convert_to(t.content, 'UTF8'))"""

        assert (sorted(outcomes), waiting) == ([False, True, True], [(1,)])
        assert word.content == "poison for the embedder"
        assert rows(stack, own) == [(15,)]

    def test_a_short_batch_loses_nothing(self, stack: Stack) -> None:
        """An embedder that returns seven of eight is an error: no row is written, and words find what waits."""
        record(stack, *numbered(13))
        advance(_parts(stack, HashingEmbedder()), claim_due(stack, WorkKind.ADVANCE)[0])
        lease = claim_due(stack, WorkKind.EMBED)[0]
        with pytest.raises(ValueError, match="shorter"):
            embed(_parts(stack, ShortEmbedder()), lease)
        with stack.owner.transaction(stack.tenant_id) as connection:
            assert connection.execute(text("select count(*) from memoryos.embedding")).scalar_one() == 0
        embed(_parts(stack, HashingEmbedder()), lease)
        with stack.owner.transaction(stack.tenant_id) as connection:
            assert connection.execute(text("select count(*) from memoryos.embedding")).scalar_one() == 5

    def test_operators_are_words(self, stack: Stack) -> None:
        """What is a query syntax elsewhere finds what its words find."""
        remember(stack, ("Maya", "alpha and beta"), ("Maya", "only beta here"), ("Maya", "nothing of it"))
        parts = recall_parts(stack, embedder=FailingEmbedder())
        plain, *others = (
            [result.content for result in search(parts, stack.tenant_id, ask(query)).results]
            for query in ("alpha beta", "alpha & beta | !", "alpha:* <-> beta", '"alpha" (((beta', "alpha% _ beta\\")
        )

        assert all(other == plain for other in others)

    def test_odd_requests_are_refused_or_answered(self, stack: Stack) -> None:
        """Blank, too long and a bad k are the caller's fault, by name; odd characters are only text."""
        remember(stack, ("Maya", "銭湯と한강"))
        with client_of(stack, recall_parts(stack), "read") as client:
            for query in ("🙂", "🙂🙂🙂", "?!…", "銭", "한강", "same " * 3000):
                assert _post(client, query=query) == 200
            for bad in ({"query": ""}, {"query": "  "}, {"query": "x" * 50_000}):
                assert _post(client, **bad) == 422
            for limit in (0, -1, 100_000):
                assert _post(client, query="x", limit=limit) == 422


class TestLanguages:
    def test_words_find_every_script(self, stack: Stack) -> None:
        """Without vectors each query puts its memory before what is unrelated; more words are never stricter."""
        remember(stack, *(("Maya", said) for said in (*UNRELATED, *STORED.values())))
        parts = recall_parts(stack, embedder=FailingEmbedder())
        for lang, queries in ASKED.items():
            for query in queries:
                best = search(parts, stack.tenant_id, ask(query)).results[0]
                assert (best.content, best.features["bm25"] > 0) == (STORED[lang], True), query


def _embed_or_not(stack: Stack, lease: Lease) -> bool:
    """Embed one page with an embedder that chokes on one text; tell whether it could."""
    try:
        embed(_parts(stack, ChokingEmbedder()), lease)
    except ModelError:
        stack.ledger.release([lease])
        return False
    return True


def _parts(stack: Stack, embedder: HashingEmbedder) -> Parts:
    return Parts(stack.app, embedder, TalkingModel())  # type: ignore[arg-type]


def _post(client: TestClient, **body: object) -> int:
    return client.post("/v1/search", json={"user_id": "maya", "agent_id": "companion", **body}).status_code
