"""Asks a running system every question through its public API, and scores what came back."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memoryos_pipeline.evaluation.metrics import (
    all_at,
    expand,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    session_any_at,
)
from memoryos_pipeline.evaluation.questions import DataSet, Question

RESULTS = 20
BUDGETS = (500, 1_000, 2_000)
VERBATIM = ("turn", "knowledge")
"""What says in a context what a turn said; a page only summarises it."""

Row = dict[str, Any]


class Asks(Protocol):
    """Whatever can be asked: the HTTP client."""

    def request(self, method: str, path: str, *, json: Any = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class Scored:
    """One question with its scores (each in [0, 1]), what was found, and how the search went."""

    question: Question
    scores: Mapping[str, float]
    found: tuple[str, ...]
    kinds: tuple[str, ...]
    degraded: bool
    search_ms: float


def ask_all(
    client: Asks,
    data: DataSet,
    *,
    kinds: tuple[str, ...] | None = None,
    advanced: Callable[[], object] = lambda: None,
) -> list[Scored]:
    """Ask every question in order; `kinds` narrows what may be recalled."""
    scored = []
    for question in data.questions:
        scored.append(ask_one(client, question, data.session_of[question.user_id], kinds=kinds))
        advanced()
    return scored


def ask_one(
    client: Asks, question: Question, session_of: Mapping[str, str], *, kinds: tuple[str, ...] | None
) -> Scored:
    """Search once, and ask for a context of each budget when the question counts."""
    body: Row = {
        "user_id": question.user_id, "agent_id": question.agent_id,
        "query": question.text, "now": question.asked_at, "kinds": kinds,
    }  # fmt: skip
    started = time.perf_counter()
    answer = client.request("POST", "/v1/search", json={**body, "limit": RESULTS})
    search_ms = (time.perf_counter() - started) * 1_000
    found = expand(_turns_of(answer["results"]))
    scores = score_list(found, question.gold, session_of)
    degraded = bool(answer["degraded"])
    for budget in BUDGETS if question.is_headline else ():
        context = client.request("POST", "/v1/context", json={**body, "token_budget": budget})
        degraded = degraded or bool(context["degraded"])
        scores |= score_context(context["items"], question.gold, budget)
    listed = tuple(result["kind"] for result in answer["results"])
    return Scored(question, scores, tuple(found), listed, degraded, search_ms)


def score_list(found: list[str], gold: frozenset[str], session_of: Mapping[str, str]) -> dict[str, float]:
    """Return every score of a ranked list of turn ids."""
    return {
        "r5": recall_at(found, gold, 5),
        "r10": recall_at(found, gold, 10),
        "r20": recall_at(found, gold, 20),
        "all10": all_at(found, gold, 10),
        "ndcg10": ndcg_at(found, gold, 10),
        "mrr": reciprocal_rank(found, gold),
        "session5": session_any_at(found, gold, session_of, 5),
    }


def score_context(items: Iterable[Row], gold: frozenset[str], budget: int) -> dict[str, float]:
    """Return the share of gold said by the lines of a context, and with what its page summaries stand for."""
    shown = list(items)
    said = expand(_turns_of(item for item in shown if item.get("kind") in VERBATIM))
    with_pages = expand(_turns_of(shown))
    return {
        f"rec{budget}": recall_at(said, gold, len(said)),
        f"rec{budget}_with_pages": recall_at(with_pages, gold, len(with_pages)),
    }


def _turns_of(results: Iterable[Row]) -> Iterable[list[str]]:
    return ([source["client_turn_id"] for source in result.get("source_turns", ())] for result in results)
