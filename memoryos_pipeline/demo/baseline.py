"""The plain baseline a context is compared with: a user's turns by BM25, filled into the same token budget. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from memoryos_pipeline.domain.packing import estimate_tokens
from memoryos_pipeline.models.lexical import lexical_terms, query_terms

K1 = 1.2
B = 0.3
NEWLINE_TOKENS = 1

TurnBody = dict[str, Any]


class Bm25:
    """BM25 over the turns of one user."""

    def __init__(self, turns: Sequence[TurnBody]) -> None:
        self._turns = turns
        self._counts = [Counter(lexical_terms(_line(turn), "und")) for turn in turns]
        self._lengths = [counts.total() for counts in self._counts]
        self._frequency = Counter(term for counts in self._counts for term in counts)
        self._average = sum(self._lengths) / max(len(turns), 1)

    def fill(self, question: str, *, budget_tokens: int) -> list[str]:
        """Return the client_turn_id of the best turns that fit into the budget; one that does not fit is left out."""
        chosen, spent = [], 0
        for turn in self._ranked(query_terms(question, "und")):
            cost = estimate_tokens(_line(turn)) + NEWLINE_TOKENS
            if spent + cost <= budget_tokens:
                chosen.append(str(turn["client_turn_id"]))
                spent += cost
        return chosen

    def _ranked(self, terms: Sequence[str]) -> list[TurnBody]:
        scores = [self._score(index, terms) for index in range(len(self._turns))]
        order = sorted(range(len(self._turns)), key=lambda index: (-scores[index], index))
        return [self._turns[index] for index in order if scores[index] > 0]

    def _score(self, index: int, terms: Sequence[str]) -> float:
        counts, length = self._counts[index], self._lengths[index]
        norm = K1 * (1 - B + B * length / (self._average or 1))
        return sum(
            self._rarity(term) * counts[term] * (K1 + 1) / (counts[term] + norm) for term in terms if counts[term]
        )

    def _rarity(self, term: str) -> float:
        containing = self._frequency[term]
        return math.log(1 + (len(self._turns) - containing + 0.5) / (containing + 0.5))


def _line(turn: TurnBody) -> str:
    return f"[{str(turn['occurred_at'])[:10]}] {turn['speaker']}: {turn['content']}"
