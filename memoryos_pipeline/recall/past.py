"""Search in the past: what a question would have found at a moment, ranked by words. Nothing of it is recorded as use.

What was superseded or forgotten since is in no index any more, so the memory itself is read, as it was.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.models.lexical import lexical_terms, query_terms
from memoryos_pipeline.recall.filters import ANYTHING, Filters
from memoryos_pipeline.recall.parts import RecallParts
from memoryos_pipeline.recall.results import Result, as_result, at_least, of_statement
from memoryos_pipeline.store.past import Past, read_past
from memoryos_pipeline.store.search import ScopeKey

BY_WORDS = "as_of: ranked by words only"
K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question to a memory as it was at `at`."""

    user_id: str
    agent_id: str
    query: str
    at: datetime
    limit: int = 10
    kinds: tuple[str, ...] = ("turn", "knowledge")
    filters: Filters = ANYTHING
    min_score: float = -math.inf


@dataclass(frozen=True, slots=True)
class PastRetrieval:
    """What would have been found, best first, and what was left out."""

    retrieval_id: UUID
    results: tuple[Result, ...]
    degraded: tuple[str, ...] = (BY_WORDS,)


def search_past(parts: RecallParts, tenant_id: UUID, asked: PastQuestion) -> PastRetrieval:
    """Return the turns and statements of that moment that share words with the question."""
    key = ScopeKey(tenant_id, scope_id(tenant_id, asked.user_id, asked.agent_id))
    with parts.database.snapshot(tenant_id) as connection:
        past = read_past(connection, key, asked.at)
    found = [each for each in _found(past, asked.kinds) if _passes(each, asked.filters, past.tiers)]
    texts = [lexical_terms(f"{result.speaker} {result.content}", "und") for result in found]
    scores = bm25(query_terms(asked.query, "und"), texts)
    order = sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], -n))
    ranked = tuple(_scored(found[n], scores[n]) for n in order[: asked.limit])
    return PastRetrieval(mint_id(), at_least(ranked, asked.min_score))


def bm25(terms: Sequence[str], texts: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each text for the terms of a question."""
    counts = [Counter(text) for text in texts]
    mean = sum(map(len, texts)) / len(texts) if texts else 0.0
    among = {term: sum(term in count for count in counts) for term in terms}
    return [
        sum(
            _share(count[term], among[term], total=len(texts), length=len(text) / mean) for term in terms if count[term]
        )
        for text, count in zip(texts, counts, strict=True)
    ]


def _share(tf: int, among: int, *, total: int, length: float) -> float:
    idf = math.log(1 + (total - among + 0.5) / (among + 0.5))
    return idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length))


def _passes(result: Result, filters: Filters, tiers: Mapping[UUID, str]) -> bool:
    where = {result.conversation_id, *(turn.external_id for turn in result.source_turns)}
    return (
        filters.holds_at(result.event_at or result.at)
        and (filters.tiers is None or tiers.get(result.owner_id, "cold") in filters.tiers)
        and (filters.conversation_id is None or filters.conversation_id in where)
        and filters.is_by(result.speaker)
    )


def _found(past: Past, kinds: Sequence[str]) -> list[Result]:
    turns = {turn.turn_id: turn for turn in past.turns}
    found = [as_result(turn) for turn in past.turns] if "turn" in kinds else []
    if "knowledge" in kinds:
        for each in past.statements:
            sources = tuple(turns[turn_id] for turn_id in each.source_turn_ids if turn_id in turns)
            found.append(of_statement(each.statement, sources))
    return found


def _scored(result: Result, score: float) -> Result:
    return replace(result, score=score, signals={"bm25": score}, features={"bm25": score})
