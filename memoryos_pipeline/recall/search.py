"""Search: read the question, embed it outside any transaction, gather, rank, explain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.domain.answerability import NotSaid
from memoryos_pipeline.domain.errors import ModelError
from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.ranking_profiles import WITH_ENTITIES
from memoryos_pipeline.models.protocols import Vector
from memoryos_pipeline.recall.bias import biased
from memoryos_pipeline.recall.doubt import find_doubt
from memoryos_pipeline.recall.features import Candidates, build_candidates
from memoryos_pipeline.recall.filters import ANYTHING, Filters, Gate, read_gate
from memoryos_pipeline.recall.gather import KINDS, Arms, Evidence, gather
from memoryos_pipeline.recall.links import PROFILES, with_links
from memoryos_pipeline.recall.parity import rank_as
from memoryos_pipeline.recall.parts import RecallParts
from memoryos_pipeline.recall.question import Question, read_question
from memoryos_pipeline.recall.results import Ranked, Result, at_least, describe
from memoryos_pipeline.store.policies import find_policy_of_scope
from memoryos_pipeline.store.search import Frame, ScopeKey, read_frame

DEGRADED_EMBEDDER = "embedder_failed: ranked by words, speakers, dates and context only"
DEGRADED_NO_VECTORS = "no_vectors: nothing in this memory has a vector of the running embedder yet"


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to one user's memory with one agent. `now` is what relative dates are seen from.

    `profile` is a ranking of `domain.ranking_profiles`; None takes the one of the scope's policy.
    `filters` are a gate: as many results as match, up to the limit, and no other. `min_score` leaves out the worse
    ones; what a score may be depends on the profile.
    """

    user_id: str
    agent_id: str
    query: str
    limit: int = 10
    now: datetime | None = None
    kinds: tuple[str, ...] = KINDS
    include_history: bool = False
    profile: str | None = None
    filters: Filters = ANYTHING
    min_score: float = -math.inf


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The answer to an Ask: results best first, and what was left out (`degraded`), never silently.

    `not_said` tells, when a question names one person, how much it looks as if only others said anything of the kind.
    `gate` is everything that passes the filters, None when there are none. `policy` is the one in force.
    """

    retrieval_id: UUID
    key: ScopeKey
    results: tuple[Result, ...]
    evidence: Evidence
    degraded: tuple[str, ...] = ()
    not_said: NotSaid | None = None
    gate: Gate | None = None
    policy: Policy = DEFAULT


@dataclass(slots=True)
class _Reading:
    question: Question
    frame: Frame
    policy: Policy
    vector: Vector | None = None
    degraded: list[str] = field(default_factory=list)


def search(parts: RecallParts, tenant_id: UUID, ask: Ask) -> Retrieval:
    """Return the best results for a question. An unknown user has none; a failing embedder degrades, and is named."""
    key = ScopeKey(tenant_id, scope_id(tenant_id, ask.user_id, ask.agent_id))
    reading = _read(parts, key, ask)
    policy = reading.policy
    with parts.database.snapshot(tenant_id) as connection:
        arms = _arms(connection, key, ask, reading)
        evidence = gather(connection, key, reading.question, frame=reading.frame, arms=arms)
        candidates = build_candidates(evidence, policy)
        ranked = _rank(evidence, candidates, ask, policy, gate=arms.gate)
        if (ask.profile or policy.ranking) in PROFILES:
            ranked = with_links(connection, key, ranked)
        results = at_least(describe(connection, key, ranked, limit=ask.limit), ask.min_score)
    if reading.vector is not None and not len(evidence.dense.owners) and evidence.has_indexed_turns:
        reading.degraded.append(DEGRADED_NO_VECTORS)
    not_said = find_doubt(evidence, candidates)
    return Retrieval(mint_id(), key, results, evidence, tuple(reading.degraded), not_said, arms.gate, policy)


def _arms(connection: Connection, key: ScopeKey, ask: Ask, reading: _Reading) -> Arms:
    gate = None
    if not ask.filters.is_open:
        gate = read_gate(
            connection, key, ask.filters, frame=reading.frame, kinds=ask.kinds, include_history=ask.include_history
        )
    return Arms(
        _searched(ask.kinds),
        reading.vector,
        include_history=ask.include_history,
        alone=() if "turn" in ask.kinds else ask.kinds,
        gate=gate,
        with_entities=_profile(ask, reading.policy) in WITH_ENTITIES,
    )


def _profile(ask: Ask, policy: Policy) -> str:
    return ask.profile or policy.ranking


def _rank(evidence: Evidence, candidates: Candidates, ask: Ask, policy: Policy, *, gate: Gate | None) -> Ranked:
    passing = None if gate is None else gate.admits(candidates.owner_ids)
    ranking = rank_as(_profile(ask, policy), candidates, query_terms=len(evidence.question.terms), passing=passing)
    ranking = biased(ranking, candidates, policy)
    shown = [number for number, kind in enumerate(KINDS) if kind in ask.kinds]
    order = ranking.order[np.isin(candidates.kinds[ranking.order], shown)]
    return Ranked(evidence, candidates, ranking, order)


def _read(parts: RecallParts, key: ScopeKey, ask: Ask) -> _Reading:
    with parts.database.snapshot(key.tenant_id) as connection:
        frame = read_frame(connection, key, parts.embedder)
        own = find_policy_of_scope(connection, key.tenant_id, key.scope_id)
    now = ask.now or frame.now
    question = read_question(ask.query, speakers=frame.speakers, now=now)
    reading = _Reading(question, frame, own.policy if own else parts.policy)
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
