"""Scores say what their names promise, to the digit where a hand can compute them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.evaluation.metrics import (
    all_at,
    any_at,
    auroc,
    bootstrap_interval,
    expand,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    session_any_at,
)

TURNS = st.sampled_from([f"D{session}:{turn}" for session in range(1, 4) for turn in range(1, 6)])
LISTS = st.lists(TURNS, unique=True)


class TestExpand:
    def test_each_result_gives_its_turns_in_order_once(self) -> None:
        """A page gives its turns in its order; what was given before is dropped, wherever it stands."""
        assert expand([["D1:2"], ["D1:1", "D1:2", "D1:3"], [], ["D1:3"], ["D2:9"]]) == [
            "D1:2",
            "D1:1",
            "D1:3",
            "D2:9",
        ]

    @given(st.lists(st.lists(TURNS)))
    def test_nothing_is_lost_or_repeated(self, results: list[list[str]]) -> None:
        """The expansion has exactly the turns of the results, each once."""
        found = expand(results)

        assert len(found) == len(set(found))
        assert set(found) == {turn for result in results for turn in result}


class TestScore:
    def test_known_values(self) -> None:
        """Two of three gold turns at places 2 and 4."""
        found, gold = ["a", "X", "b", "Y", "c"], frozenset({"X", "Y", "Z"})

        assert recall_at(found, gold, 3) == pytest.approx(1 / 3)
        assert recall_at(found, gold, 5) == pytest.approx(2 / 3)
        assert (all_at(found, gold, 5), all_at(found, frozenset({"X", "Y"}), 4)) == (0.0, 1.0)
        assert (any_at(found, gold, 1), any_at(found, gold, 2)) == (0.0, 1.0)
        assert reciprocal_rank(found, gold) == 0.5
        gained = 1 / math.log2(3) + 1 / math.log2(5)
        assert ndcg_at(found, gold, 10) == pytest.approx(gained / (1 + 1 / math.log2(3) + 1 / 2))

    def test_nothing_found_is_nothing(self) -> None:
        """An empty list scores zero and divides by nothing."""
        gold = frozenset({"X"})

        assert [
            recall_at([], gold, 5),
            all_at([], gold, 5),
            ndcg_at([], gold, 5),
            reciprocal_rank([], gold),
        ] == [0] * 4

    @given(LISTS, st.frozensets(TURNS, min_size=1), st.integers(1, 20))
    def test_scores_are_shares_and_grow_with_k(self, found: list[str], gold: frozenset[str], k: int) -> None:
        """Each score lies in [0, 1]; all <= recall <= any; a longer list never recalls less."""
        recalled = recall_at(found, gold, k)

        assert 0 <= all_at(found, gold, k) <= recalled <= any_at(found, gold, k) <= 1
        assert recalled <= recall_at(found, gold, k + 1)
        assert 0 <= ndcg_at(found, gold, k) <= 1 + 1e-9

    @given(LISTS, st.frozensets(TURNS, min_size=1))
    def test_gold_first_is_perfect(self, found: list[str], gold: frozenset[str]) -> None:
        """With every gold turn before anything else the order cannot be better."""
        best = [*sorted(gold), *(turn for turn in found if turn not in gold)]

        assert ndcg_at(best, gold, 10) == pytest.approx(1.0)
        assert reciprocal_rank(best, gold) == 1.0

    def test_sessions_count_once_each(self) -> None:
        """Five turns of one session are one session, so the gold session behind them is the second."""
        session_of = {**{f"D1:{turn}": "D1" for turn in range(1, 6)}, "D2:1": "D2", "D2:7": "D2"}
        found = [*(f"D1:{turn}" for turn in range(1, 6)), "D2:1"]

        assert session_any_at(found, frozenset({"D2:7"}), session_of, 2) == 1.0
        assert session_any_at(found, frozenset({"D2:7"}), session_of, 1) == 0.0


class TestAuroc:
    def test_it_is_the_chance_to_be_told_apart(self) -> None:
        """Perfect order is 1, ties are a coin, and without one side there is nothing to say."""
        assert auroc([3.0, 2.0], [1.0, 0.0]) == 1.0
        assert auroc([1.0], [1.0]) == 0.5
        assert auroc([1.0, 3.0], [2.0]) == 0.5
        assert auroc([], [1.0]) is None


class TestBootstrap:
    def test_it_encloses_the_mean_and_repeats(self) -> None:
        """The interval holds the mean, is the same every time, and narrows with more questions."""
        few, many = [0.0, 1.0, 1.0, 1.0] * 5, [0.0, 1.0, 1.0, 1.0] * 200
        low, high = bootstrap_interval(few)
        narrow = bootstrap_interval(many)

        assert low < 0.75 < high
        assert bootstrap_interval(few) == (low, high)
        assert narrow[1] - narrow[0] < (high - low) / 3

    def test_sure_scores_have_no_spread(self) -> None:
        """Equal scores give an interval of one point; no scores give an error, not a number."""
        assert bootstrap_interval([0.5] * 9) == (0.5, 0.5)
        with pytest.raises(ValueError, match="at least one"):
            bootstrap_interval([])
