"""Other memories' rankings over recorded columns are the ones of the domain."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from memoryos_pipeline.domain.ranking import Candidate, Place
from memoryos_pipeline.domain.ranking_profiles import NAMES, PARITY
from memoryos_pipeline.recall.parity import rank_as
from memoryos_pipeline.recall.scoring import rank
from tests.unit.recall.test_scoring import CHATS, in_columns

START = datetime(2026, 3, 1, tzinfo=UTC)


def turn(seq: int, **features: float) -> Candidate:
    """A turn at its place."""
    return Candidate("turn", UUID(int=seq), features, Place(CHATS[0], seq, START))


ROWS = [
    *(turn(seq, dense=seq / 20, bm25=float(9 - seq)) for seq in range(1, 9)),
    turn(9, bm25=3.0),
    Candidate("knowledge", UUID(int=20), {"dense": 0.7, "bm25": 2.0, "vitality": 0.5}, sources=((CHATS[0], 1),)),
    Candidate("page", UUID(int=21), {"dense": 0.6, "bm25": 1.0, "vitality": 0.2}),
]


class TestRankAs:
    @pytest.mark.parametrize("name", PARITY)
    def test_it_is_the_formula_of_the_domain(self, name: str) -> None:
        """Same scores, same signals; what a design would not retrieve is not there."""
        columns = in_columns(ROWS)
        ranking = rank_as(name, columns, query_terms=5)
        expected = PARITY[name](ROWS, 5)
        retrieved = [place for place, signals in enumerate(expected) if signals is not None]

        assert sorted(ranking.order.tolist()) == retrieved
        assert [ranking.scores[place] for place in retrieved] == pytest.approx(
            [sum((expected[place] or {}).values()) for place in retrieved]
        )
        for place in retrieved:
            given = {signal: value for signal, value in (expected[place] or {}).items() if value}
            assert ranking.signals_of(place) == pytest.approx(given)

    @pytest.mark.parametrize("name", NAMES)
    def test_best_first(self, name: str) -> None:
        """Higher is better in every profile, and the signals sum to the score."""
        ranking = rank_as(name, in_columns(ROWS), query_terms=5)
        scores = ranking.scores[ranking.order].tolist()

        assert scores == sorted(scores, reverse=True)
        assert all(
            sum(ranking.signals_of(place).values()) == pytest.approx(ranking.scores[place]) for place in ranking.order
        )

    def test_the_default_is_the_measured_sum(self) -> None:
        """Asked for by name it is the same ranking; a policy's word for a design is understood."""
        columns = in_columns(ROWS)

        assert rank_as("default", columns, query_terms=5).order.tolist() == rank(columns).order.tolist()
        assert rank_as("mem0", columns, query_terms=5).order.tolist() == (
            rank_as("mem0_v1", columns, query_terms=5).order.tolist()
        )

    def test_an_unknown_name_is_refused(self) -> None:
        """A misspelt profile is no default."""
        with pytest.raises(KeyError):
            rank_as("a-mem", in_columns(ROWS), query_terms=5)
