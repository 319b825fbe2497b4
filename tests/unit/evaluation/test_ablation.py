"""Leaving a signal out orders recorded results as if it had never counted."""

from memoryos_pipeline.evaluation.ablation import Asked, Recorded, ablate, reorder


def recorded(turn: str, **signals: float) -> Recorded:
    """A result that stands for one turn."""
    return Recorded((turn,), signals)


class TestAblate:
    def test_a_signal_that_decides_is_seen(self) -> None:
        """The answer is held among the ten by its words: without them it is lost, without vectors it is not."""
        others = [recorded(f"other{n}", dense=0.5, bm25=0.0) for n in range(10)]
        table = ablate([Asked([recorded("a", dense=0.1, bm25=0.9), *others], frozenset("a"))])

        assert table == {"nothing": 1.0, "bm25": 0.0, "dense": 1.0}

    def test_a_stand_in_goes_with_what_it_stands_for(self) -> None:
        """Words that take the place of a missing vector are left out with the vectors."""
        fresh = recorded("a", bm25_instead_of_dense=0.9)

        assert set(ablate([Asked([fresh], frozenset("a"))])) == {"nothing", "dense"}

    def test_equals_keep_their_order(self) -> None:
        """Results without the signals that count stay as they were, so nothing depends on chance."""
        results = [recorded("b", dense=0.2), recorded("a", dense=0.4), recorded("c", bm25=1.0)]

        assert reorder(results, ["bm25"]) == [results[2], results[0], results[1]]

    def test_nothing_asked_is_an_empty_table(self) -> None:
        """Without questions there is nothing to say."""
        assert ablate([]) == {}
