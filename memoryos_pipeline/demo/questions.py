"""Asking the sample's questions, and whether the context held what answers them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memoryos_pipeline.demo.baseline import Bm25

BUDGET_TOKENS = 800
CITES_ITS_ANSWER = ("turn", "knowledge")

Row = dict[str, Any]


class Asks(Protocol):
    """Whatever can be asked for a context: the HTTP client."""

    def request(self, method: str, path: str, *, json: Any = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with the context it was given, and whether that, or BM25 in the same budget, held the answer."""

    question: Row
    context: Row
    hit: bool
    bm25_hit: bool


def ask(client: Asks, question: Row, *, baseline: Bm25) -> Asked:
    """Ask one question as of its own date."""
    body = {
        "user_id": question["user_id"],
        "agent_id": question["agent_id"],
        "query": question["question"],
        "now": question["asked_at"],
        "token_budget": BUDGET_TOKENS,
    }
    context: Row = client.request("POST", "/v1/context", json=body)
    gold = set(question["gold"])
    by_words = baseline.fill(question["question"], budget_tokens=BUDGET_TOKENS)
    return Asked(question, context, hit=holds_gold(context["items"], gold), bm25_hit=not gold.isdisjoint(by_words))


def holds_gold(items: Iterable[Row], gold: set[str]) -> bool:
    """Tell whether a gold turn, or knowledge citing one, is among the items of a context."""
    return any(
        source["client_turn_id"] in gold
        for item in items
        if item.get("kind") in CITES_ITS_ANSWER
        for source in item.get("source_turns", ())
    )


def baselines(turns: Sequence[Row]) -> dict[str, Bm25]:
    """Return BM25 over each user's turns."""
    users = {turn["user_id"] for turn in turns}
    return {user: Bm25([turn for turn in turns if turn["user_id"] == user]) for user in users}
