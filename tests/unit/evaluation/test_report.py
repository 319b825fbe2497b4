"""Answers of the API become scores, and scores a report that hides nothing."""

from typing import Any

import pytest

from memoryos_pipeline.evaluation.asking import ask_all, score_context
from memoryos_pipeline.evaluation.questions import DataSet, Question
from memoryos_pipeline.evaluation.report import summarize

SESSIONS = {"maya": {"a": "one", "b": "one", "c": "two"}}


def question(category: str, *gold: str) -> Question:
    """A question whose answer is in these turns."""
    return Question(
        "q", category, "maya", "default", "Where is the kiln?", "2026-05-04T18:02:00+00:00", frozenset(gold)
    )


def result(kind: str, *turns: str) -> dict[str, Any]:
    """A result of the API that stands for these turns."""
    return {"kind": kind, "source_turns": [{"client_turn_id": turn} for turn in turns]}


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
        assert both["auroc5"] is None

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
