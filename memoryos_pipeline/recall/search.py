"""Search: read the question, embed it outside any transaction, gather, rank, explain."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import numpy as np

from memoryos_pipeline.domain.errors import ModelError
from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.ranking import DEFAULT, Profile
from memoryos_pipeline.models.protocols import Vector
from memoryos_pipeline.recall.features import build_candidates
from memoryos_pipeline.recall.gather import KINDS, Arms, Evidence, gather
from memoryos_pipeline.recall.parts import RecallParts
from memoryos_pipeline.recall.question import Question, read_question
from memoryos_pipeline.recall.results import Ranked, Result, describe
from memoryos_pipeline.recall.scoring import rank
from memoryos_pipeline.store.search import Frame, ScopeKey, read_frame

DEGRADED_EMBEDDER = "embedder_failed: ranked by words, speakers, dates and context only"
DEGRADED_NO_VECTORS = "no_vectors: nothing in this memory has a vector of the running embedder yet"


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to one user's memory with one agent. `now` is what relative dates are seen from."""

    user_id: str
    agent_id: str
    query: str
    limit: int = 10
    now: datetime | None = None
    kinds: tuple[str, ...] = KINDS
    include_history: bool = False


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The answer to an Ask: results best first, and what was left out (`degraded`), never silently."""

    retrieval_id: UUID
    key: ScopeKey
    results: tuple[Result, ...]
    evidence: Evidence
    degraded: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    question: Question
    frame: Frame
    vector: Vector | None = None
    degraded: list[str] = field(default_factory=list)


def search(parts: RecallParts, tenant_id: UUID, ask: Ask, *, profile: Profile = DEFAULT) -> Retrieval:
    """Return the best results for a question. An unknown user has none; a failing embedder degrades, and is named."""
    key = ScopeKey(tenant_id, scope_id(tenant_id, ask.user_id, ask.agent_id))
    reading = _read(parts, key, ask)
    with parts.database.snapshot(tenant_id) as connection:
        arms = Arms(_searched(ask.kinds), reading.vector, include_history=ask.include_history)
        evidence = gather(connection, key, reading.question, frame=reading.frame, arms=arms)
        ranked = _rank(evidence, ask.kinds, profile, heat_half_life_days=parts.policy.heat_half_life_days)
        results = describe(connection, key, ranked, limit=ask.limit)
    if reading.vector is not None and not len(evidence.dense.owners) and evidence.has_indexed_turns:
        reading.degraded.append(DEGRADED_NO_VECTORS)
    return Retrieval(mint_id(), key, results, evidence, tuple(reading.degraded))


def _rank(evidence: Evidence, kinds: Sequence[str], profile: Profile, *, heat_half_life_days: float) -> Ranked:
    candidates = build_candidates(evidence, heat_half_life_days=heat_half_life_days)
    ranking = rank(candidates, profile)
    shown = [KINDS.index(kind) for kind in kinds]
    order = ranking.order[np.isin(candidates.kinds[ranking.order], shown)]
    return Ranked(evidence, candidates, ranking, order)


def _read(parts: RecallParts, key: ScopeKey, ask: Ask) -> _Reading:
    with parts.database.snapshot(key.tenant_id) as connection:
        frame = read_frame(connection, key, parts.embedder)
    now = ask.now or frame.now
    question = read_question(ask.query, speakers=frame.speakers, now=now)
    reading = _Reading(question, frame)
    if not frame.speakers:
        return reading
    try:
        reading.vector = parts.embedder.embed_query(question.dense_text)
    except ModelError:
        reading.degraded.append(DEGRADED_EMBEDDER)
    return reading


def _searched(kinds: Sequence[str]) -> tuple[str, ...]:
    # Turns are always gathered: knowledge borrows their context. They are left out of the results when not asked for.
    return tuple(dict.fromkeys(("turn", *kinds)))
