"""The rankings of other memories give the scores their papers and code give, computed by hand."""

import math
from uuid import UUID

import pytest

from memoryos_pipeline.domain.ranking import Candidate, OwnerKind
from memoryos_pipeline.domain.ranking_profiles import PARITY, entity_spread, squash_bm25


def candidate(number: int, kind: OwnerKind = "turn", **features: float) -> Candidate:
    """A candidate with its recorded features."""
    return Candidate(kind, UUID(int=number), features)


def scores(name: str, *candidates: Candidate, query_terms: int = 4) -> dict[int, float]:
    """The score of every retrieved candidate by its number, best first."""
    scored = zip(candidates, PARITY[name](candidates, query_terms), strict=True)
    rows = {each.owner_id.int: sum(signals.values()) for each, signals in scored if signals is not None}
    return dict(sorted(rows.items(), key=lambda row: -row[1]))


class TestScores:
    def test_seed000(self) -> None:
        """A warm page of similarity .8 and heat .5 scores .68, cold knowledge of .8 and weight .5 scores .40."""
        page = candidate(1, "page", dense=0.8, vitality=0.5)
        item = candidate(2, "knowledge", dense=0.8, vitality=0.5)

        assert scores("seed000", page, item) == pytest.approx({1: 0.68, 2: 0.40})

    def test_a_mem(self) -> None:
        """Cosines .9 .5 .1 and BM25 8 2 0, both min-max scaled, half and half: 1, .375, 0."""
        notes = [
            candidate(n, dense=cosine, bm25=words) for n, (cosine, words) in enumerate(((0.9, 8), (0.5, 2), (0.1, 0)))
        ]

        assert scores("a_mem", *notes) == pytest.approx({0: 1.0, 1: 0.375, 2: 0.0})

    @pytest.mark.parametrize("name", ["memorybank", "mem0_v1"])
    def test_plain_cosine(self, name: str) -> None:
        """What has faded ranks by meaning alone; words, heat and weight change nothing."""
        rows = candidate(1, dense=0.4, bm25=9.0, vitality=1.0), candidate(2, "knowledge", dense=0.6, vitality=0.1)

        assert scores(name, *rows) == pytest.approx({2: 0.6, 1: 0.4})
        assert list(scores(name, *rows)) == [2, 1]

    def test_mem0_v2(self) -> None:
        """Cosine, BM25 through a sigmoid (half at 7 for four terms) and half an entity, over 2.5."""
        row = candidate(1, dense=0.5, bm25=7.0, entity=0.8, entity_owners=11)

        assert scores("mem0_v2", row) == pytest.approx({1: (0.5 + 0.5 + 0.8 * 0.5 * 0.90909090909) / 2.5})

    def test_mem0_v2_divides_by_what_there_is(self) -> None:
        """Without entities the sum is over 2, with cosine alone over 1; a cosine below .1 is not retrieved."""
        assert scores("mem0_v2", candidate(1, dense=0.5, bm25=7.0)) == pytest.approx({1: 0.5})
        assert scores("mem0_v2", candidate(1, dense=0.5), candidate(2, dense=0.05)) == pytest.approx({1: 0.5})

    def test_bai_lab(self) -> None:
        """Seven passages of cosine .1 and more, nearest first, of the five nearest segments, and twenty facts."""
        segments = [candidate(n, dense=0.2 + n / 100, segment=0.1 * n) for n in range(1, 10)]
        far = candidate(20, dense=0.05)
        facts = [candidate(100 + n, "knowledge", dense=0.01 * n) for n in range(30)]

        assert list(scores("bai_lab", *segments)) == [9, 8, 7, 6, 5], "the segments 1 to 4 are not among the five"
        assert list(scores("bai_lab", *(candidate(n, dense=n / 100) for n in range(10, 20)), far)) == [
            19, 18, 17, 16, 15, 14, 13,
        ]  # fmt: skip
        assert len(scores("bai_lab", *facts)) == 20

    def test_a_negative_cosine_is_none(self) -> None:
        """Decay multiplies; without the clamp it would raise what points the other way."""
        assert scores("seed000", candidate(1, "knowledge", dense=-0.5, vitality=0.1)) == {1: 0.0}


class TestMem0:
    def test_spread_of_an_entity(self) -> None:
        """One memory has all of it; with 11, 33 and 101 less and less is left."""
        assert [round(entity_spread(n), 4) for n in (1, 11, 33, 101)] == [1.0, 0.9091, 0.4941, 0.0909]

    @pytest.mark.parametrize(("terms", "middle"), [(1, 5.0), (3, 5.0), (6, 7.0), (9, 9.0), (15, 10.0), (40, 12.0)])
    def test_a_longer_question_needs_more_words(self, terms: int, middle: float) -> None:
        """The BM25 that counts half grows with the question; no word in common counts nothing."""
        assert squash_bm25(middle, terms) == pytest.approx(0.5)
        assert squash_bm25(0.0, terms) == 0.0
        assert squash_bm25(middle + 1, 2 if terms <= 3 else terms) > 0.5
        assert math.isfinite(squash_bm25(1e4, terms))
