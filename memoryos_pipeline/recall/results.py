"""Results as callers see them: content, speaker, local date, source turns, and why. Near-duplicates are merged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memoryos_pipeline.domain.ranking import Ranked, places_of
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.recall.gather import Evidence
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.search import (
    FoundKnowledge,
    FoundPage,
    FoundTurn,
    ScopeKey,
    SourceTurn,
    local_time,
    read_source_turns,
)

REPEATS_FROM = 0.8
"""Knowledge whose terms are found in a turn it cites to this share says nothing the turn does not."""
MUCH_LONGER = 3
"""A turn this many times as long as the knowledge does not stand for it: the short form is worth its line."""


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that may answer the question. `signals` sum to `score`; `features` are their raw values.

    `repeats` names knowledge that says the same as this turn and was merged into it, with its event date.
    """

    kind: str
    owner_id: UUID
    score: float
    signals: dict[str, float]
    features: dict[str, float]
    content: str
    speaker: str
    at: datetime
    conversation_id: str | None
    source_turns: tuple[SourceTurn, ...]
    knowledge_kind: str | None = None
    status: str | None = None
    lineage_id: UUID | None = None
    version: int = 1
    event_at: datetime | None = None
    event_precision: str | None = None
    is_hot: bool = False
    repeats: tuple[UUID, ...] = ()


def describe(
    database: Database, key: ScopeKey, evidence: Evidence, ranked: Sequence[Ranked], *, limit: int
) -> tuple[Result, ...]:
    """Return the first `limit` results of a ranking, with near-duplicates merged and sources named."""
    kept = _merge_repeats(evidence, ranked, limit=limit)
    sources = _name_sources(database, key, evidence, [each for each, _ in kept])
    return tuple(_result(evidence, each, repeats, sources) for each, repeats in kept)


def as_result(turn: FoundTurn) -> Result:
    """Return a turn as a result without a score, for the recent turns of a context."""
    return _of_turn(turn, (), {}, score=0.0)


def _merge_repeats(
    evidence: Evidence, ranked: Sequence[Ranked], *, limit: int
) -> list[tuple[Ranked, tuple[FoundKnowledge, ...]]]:
    """Walk down the ranking; knowledge that repeats a turn it cites gives its place to that turn, or adds to it."""
    known = {item.knowledge_id: item for item in evidence.knowledge}
    turns = {places_of(each.candidate)[0]: each for each in ranked if each.candidate.kind == "turn"}
    kept: dict[UUID, tuple[Ranked, tuple[FoundKnowledge, ...]]] = {}
    for each in ranked:
        if len(kept) >= limit:
            break
        item = known.get(each.candidate.owner_id)
        repeated = _repeated_turn(evidence, item, turns) if item else None
        owner = repeated or each
        held = kept.get(owner.candidate.owner_id, (owner, ()))
        repeats = (*held[1], item) if repeated and item else held[1]
        kept[owner.candidate.owner_id] = (held[0], repeats)
    return list(kept.values())


def _repeated_turn(evidence: Evidence, item: FoundKnowledge, turns: dict[tuple[UUID, int], Ranked]) -> Ranked | None:
    if item.status != "active" or len(item.sources) != 1 or item.sources[0] not in turns:
        return None
    turn = evidence.turns[item.sources[0]]
    said = lexical_terms(item.content, item.lang)
    heard = lexical_terms(f"{turn.speaker} {turn.content} {turn.occurred_at:%Y-%m-%d}", turn.lang)
    if not said or len(heard) > MUCH_LONGER * len(said):
        return None
    shared = sum(1 for term in said if term in set(heard))
    return turns[item.sources[0]] if shared >= REPEATS_FROM * len(said) else None


def _name_sources(
    database: Database, key: ScopeKey, evidence: Evidence, kept: Iterable[Ranked]
) -> dict[tuple[UUID, int], SourceTurn]:
    wanted = {place for each in kept for place in (*places_of(each.candidate), *each.candidate.sources)}
    named = {place: _source(evidence.turns[place]) for place in wanted if place in evidence.turns}
    unknown = sorted(wanted - named.keys())
    if unknown:
        with database.snapshot(key.tenant_id) as connection:
            named |= read_source_turns(connection, key, unknown)
    return named


def _source(turn: FoundTurn) -> SourceTurn:
    offset = turn.occurred_at.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    return SourceTurn(turn.conversation_id, turn.seq, turn.turn_id, turn.client_turn_id, turn.external_id, minutes)


def _result(
    evidence: Evidence,
    each: Ranked,
    repeats: tuple[FoundKnowledge, ...],
    named: dict[tuple[UUID, int], SourceTurn],
) -> Result:
    candidate = each.candidate
    places = places_of(candidate) or candidate.sources
    sources = tuple(named[place] for place in places if place in named)
    result = _content(evidence, each, sources)
    dated = next((item for item in repeats if item.event_at), None)
    return replace(
        result,
        signals=dict(each.signals),
        features=dict(candidate.features),
        repeats=tuple(item.knowledge_id for item in repeats),
        event_at=_local(dated.event_at, sources) if dated else result.event_at,
        event_precision=dated.event_precision if dated else result.event_precision,
    )


def _content(evidence: Evidence, each: Ranked, sources: tuple[SourceTurn, ...]) -> Result:
    owner_id = each.candidate.owner_id
    if each.candidate.place:
        place = each.candidate.place
        turn = evidence.turns[place.conversation_id, place.seq]
        return _of_turn(turn, sources, {}, score=each.score)
    if each.candidate.kind == "knowledge":
        item = next(item for item in evidence.knowledge if item.knowledge_id == owner_id)
        return _of_knowledge(item, sources, score=each.score)
    return _of_page(next(page for page in evidence.pages if page.page_id == owner_id), sources, score=each.score)


def _of_turn(turn: FoundTurn, sources: tuple[SourceTurn, ...], signals: dict[str, float], *, score: float) -> Result:
    return Result(
        kind="turn",
        owner_id=turn.turn_id,
        score=score,
        signals=signals,
        features={},
        content=turn.content,
        speaker=turn.speaker,
        at=turn.occurred_at,
        conversation_id=turn.external_id,
        source_turns=sources or (_source(turn),),
        is_hot=turn.is_hot,
    )


def _of_knowledge(item: FoundKnowledge, sources: tuple[SourceTurn, ...], *, score: float) -> Result:
    return Result(
        kind="knowledge",
        owner_id=item.knowledge_id,
        score=score,
        signals={},
        features={},
        content=item.content,
        speaker=item.actor,
        at=_local(item.turn_at, sources),
        conversation_id=sources[0].external_id if sources else None,
        source_turns=sources,
        knowledge_kind=item.kind,
        status=item.status,
        lineage_id=item.lineage_id,
        version=item.version,
        event_at=_local(item.event_at, sources) if item.event_at else None,
        event_precision=item.event_precision,
    )


def _of_page(page: FoundPage, sources: tuple[SourceTurn, ...], *, score: float) -> Result:
    return Result(
        kind="page",
        owner_id=page.page_id,
        score=score,
        signals={},
        features={},
        content=page.summary,
        speaker="",
        at=_local(page.first_turn_at, sources),
        conversation_id=sources[0].external_id if sources else None,
        source_turns=sources,
    )


def _local(at: datetime | None, sources: Sequence[SourceTurn]) -> datetime:
    assert at is not None  # noqa: S101 - callers pass what they checked
    return local_time(at, sources[0].utc_offset_minutes if sources else 0)
