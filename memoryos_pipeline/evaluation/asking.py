"""Asks a running system every question through its public API, and scores what came back."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memoryos_pipeline.evaluation.ablation import Recorded
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
RESULTS_TO_ABLATE = 100
"""What is asked for when signals are to be left out afterwards: turns from further down have to be able to rise."""
BUDGETS = (500, 1_000, 2_000)
VERBATIM = ("turn", "knowledge")
"""What says in a context what a turn said; a page only summarises it."""

Row = dict[str, Any]


class Asks(Protocol):
    """Whatever can be asked: the HTTP client."""

    def request(self, method: str, path: str, *, json: Any = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class Manner:
    """How questions are asked: of what may be recalled, by which profile, with contexts, and to be ablated."""

    kinds: tuple[str, ...] | None = None
    profile: str | None = None
    with_contexts: bool = True
    to_ablate: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """One question with its scores (each in [0, 1]), what was found, and how the search went.

    `not_said` is how much the answer doubts that the person named said it, None without such a doubt. `recorded` holds
    for every result the turns it stands for and what each signal gave to it, when signals are to be ablated.
    """

    question: Question
    scores: Mapping[str, float]
    found: tuple[str, ...]
    kinds: tuple[str, ...]
    degraded: bool
    search_ms: float
    not_said: float | None = None
    recorded: tuple[Recorded, ...] = ()


def ask_all(
    client: Asks,
    data: DataSet,
    *,
    manner: Manner = Manner(),
    advanced: Callable[[], object] = lambda: None,
) -> list[Scored]:
    """Ask every question in order."""
    scored = []
    for question in data.questions:
        scored.append(ask_one(client, question, data.session_of[question.user_id], manner=manner))
        advanced()
    return scored


def ask_one(client: Asks, question: Question, session_of: Mapping[str, str], *, manner: Manner) -> Scored:
    """Search once, and ask for a context of each budget when the question counts."""
    body: Row = {
        "user_id": question.user_id, "agent_id": question.agent_id,
        "query": question.text, "now": question.asked_at, "kinds": manner.kinds,
        **({"profile": manner.profile} if manner.profile else {}),
    }  # fmt: skip
    started = time.perf_counter()
    limit = RESULTS_TO_ABLATE if manner.to_ablate else RESULTS
    answer = client.request("POST", "/v1/search", json={**body, "limit": limit})
    search_ms = (time.perf_counter() - started) * 1_000
    results = answer["results"][:RESULTS]
    found = expand(_turns_of(results))
    scores = score_list(found, question.gold, session_of)
    degraded = bool(answer["degraded"])
    for budget in BUDGETS if question.is_headline and manner.with_contexts else ():
        context = client.request("POST", "/v1/context", json={**body, "token_budget": budget})
        degraded = degraded or bool(context["degraded"])
        scores |= score_context(context["items"], question.gold, budget)
    return Scored(
        question, scores, tuple(found), tuple(result["kind"] for result in results), degraded, search_ms,
        not_said=(answer.get("not_said") or {}).get("doubt"),
        recorded=tuple(map(_recorded, answer["results"])) if manner.to_ablate else (),
    )  # fmt: skip


def _recorded(result: Row) -> Recorded:
    turns = tuple(source["client_turn_id"] for source in result.get("source_turns", ()))
    return Recorded(turns, result["signals"])


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
