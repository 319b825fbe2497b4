"""Answers of the API become scores, and scores a report that hides nothing."""

from typing import Any

import pytest

from memoryos_pipeline.evaluation.asking import Manner, Scored, ask_all, score_context
from memoryos_pipeline.evaluation.questions import DataSet, Question
from memoryos_pipeline.evaluation.report import across_tiers, compare, summarize, summarize_ablation

SESSIONS = {"maya": {"a": "one", "b": "one", "c": "two"}}


def question(category: str, *gold: str) -> Question:
    """A question whose answer is in these turns."""
    return Question(
        "q", category, "maya", "default", "Where is the kiln?", "2026-05-04T18:02:00+00:00", frozenset(gold)
    )


def result(kind: str, *turns: str) -> dict[str, Any]:
    """A result of the API that stands for these turns."""
    sources = [{"client_turn_id": turn} for turn in turns]
    return {"kind": kind, "source_turns": sources, "signals": {"bm25": 0.5}}


class Answers:
    """An API that always gives the same results, and keeps what it was asked."""

    def __init__(self, *results: dict[str, Any], degraded: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._results, self._degraded = list(results), list(degraded)

    def request(self, method: str, path: str, *, json: Any = None) -> Any:
        self.asked.append((path, json))
        return {"results": self._results, "items": self._results, "degraded": self._degraded}


def ask(api: Answers, *questions: Question) -> Any:
    """Ask and summarize."""
    return summarize(ask_all(api, DataSet([], questions, SESSIONS)))


class TestAsk:
    def test_it_asks_as_of_the_question(self) -> None:
        """One search of 20 results and a context of each budget, at the question's own moment."""
        api = Answers(result("turn", "a"))
        ask(api, question("1", "a"))

        assert [path for path, _ in api.asked] == ["/v1/search", *["/v1/context"] * 3]
        assert api.asked[0][1]["limit"] == 20
        assert [body["token_budget"] for path, body in api.asked[1:]] == [500, 1000, 2000]
        assert {body["now"] for _, body in api.asked} == {"2026-05-04T18:02:00+00:00"}

    def test_a_page_in_a_context_is_counted_apart(self) -> None:
        """A summary is not what was said: recall of packed tokens counts lines that say it, and pages beside."""
        scores = score_context(
            [result("page", "a"), result("knowledge", "b"), {"line": "a trait"}], frozenset("ab"), 500
        )

        assert scores == {"rec500": 0.5, "rec500_with_pages": 1.0}

    def test_it_asks_in_the_manner_wanted(self) -> None:
        """A profile is named in every request; without contexts there is one; what is ablated needs a longer list."""
        api = Answers(*(result("turn", name) for name in "abc"))
        scored = ask_all(
            api, DataSet([], [question("1", "a")], SESSIONS),
            manner=Manner(profile="lexical", with_contexts=False, to_ablate=True),
        )  # fmt: skip

        assert [(path, body["profile"], body["limit"]) for path, body in api.asked] == [("/v1/search", "lexical", 100)]
        assert [each.turns for each in scored[0].recorded] == [("a",), ("b",), ("c",)]
        assert summarize_ablation(scored) == {"nothing": 100.0, "bm25": 100.0}


class TestSummarize:
    def test_category_five_changes_no_headline(self) -> None:
        """Its row is there with its number; the overall figures are those of the others."""
        alone = ask(Answers(result("turn", "a")), question("1", "a"))
        both = ask(Answers(result("turn", "a")), question("1", "a"), question("5", "c"))

        assert (both["n"], both["r5"], both["by_category"]["5"]["n"]) == (1, 100.0, 1)
        assert both["by_category"]["5"]["r5"] == 0.0
        assert {name: both[name] for name in ("r10", "mrr", "rec500")} == {
            name: alone[name] for name in ("r10", "mrr", "rec500")
        }

    def test_figures_are_percent_with_intervals(self) -> None:
        """A question half found and one fully found make 75, inside its interval."""
        report = ask(Answers(result("page", "a", "b")), question("1", "a", "c"), question("4", "b"))

        assert report["r10"] == pytest.approx(75.0)
        assert report["interval95"]["r10"] == [50.0, 100.0]
        assert report["results_by_kind"] == {"page": 1.0}
        assert (report["by_category"]["1"]["r10"], report["by_category"]["4"]["r10"]) == (50.0, 100.0)

    def test_degraded_answers_are_counted(self) -> None:
        """A question answered without the embedder is told, once."""
        assert ask(Answers(degraded=("embedder_failed",)), question("1", "a"))["degraded"] == 1
        assert ask(Answers(), question("1", "a"))["degraded"] == 0

    def test_doubt_is_judged_by_itself(self) -> None:
        """AUROC of the doubt: how often a question about the wrong person is doubted more than another."""
        doubts = {"5": (0.9, 0.2), "1": (-0.5, 0.5), "4": (None, -1.0)}
        scored = [
            Scored(question(category, "a"), {}, (), (), degraded=False, search_ms=1.0, not_said=doubt)
            for category, values in doubts.items()
            for doubt in values
        ]
        report = summarize(scored)

        assert report["auroc5"] == pytest.approx(5 / 6, abs=1e-4)
        assert report["auroc5_n"] == {"wrong_person": 2, "right_person": 3, "no_doubt": 1}


class TestCompare:
    def test_profiles_stand_beside_each_other(self) -> None:
        """Each with its figures over the headline, and R@10 by category."""
        found = ask_all(Answers(result("turn", "a")), DataSet([], [question("1", "a"), question("5", "c")], SESSIONS))
        rows = compare({"default": found, "lexical": found[:1]})

        assert rows["default"]["r10"] == rows["lexical"]["r10"] == 100.0
        assert rows["default"]["r10_by_category"] == {"1": 100.0, "5": 0.0}

    def test_spread_is_between_the_extremes(self) -> None:
        """How far apart the best and the worst tier are."""
        reports = {tier: {"r10": r10, "n": 3} for tier, r10 in (("as-is", 84.6), ("warm", 84.2), ("cold", 84.5))}

        assert across_tiers(reports) == {
            "r10": 84.6, "n": 3, "tier_spread": 0.4, "r10_by_tier": {"as-is": 84.6, "warm": 84.2, "cold": 84.5},
        }  # fmt: skip
        assert across_tiers({"warm": {"r10": 84.2}}) == {"r10": 84.2}
