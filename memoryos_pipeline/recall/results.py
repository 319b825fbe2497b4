"""Results as callers see them: content, speaker, local date, source turns, and why. Near-duplicates are merged."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.recall.columns import Places, uuid_at, uuid_of
from memoryos_pipeline.recall.features import Candidates
from memoryos_pipeline.recall.gather import KNOWLEDGE, PAGE, TURN, Evidence
from memoryos_pipeline.recall.scoring import Ranking
from memoryos_pipeline.store.found import (
    FoundKnowledge,
    FoundPage,
    FoundTurn,
    Place,
    read_knowledge,
    read_pages,
    read_turns_at,
)
from memoryos_pipeline.store.search import ScopeKey

REPEATS_FROM = 0.8
"""Knowledge whose terms are found in a turn it cites to this share says nothing the turn does not."""
MUCH_LONGER = 3
"""A turn this many times as long as the knowledge does not stand for it: the short form is worth its line."""
SPARE = 8
"""Results read beyond the limit at first, to make up for those that are merged."""


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
    source_turns: tuple[FoundTurn, ...]
    knowledge_kind: str | None = None
    status: str | None = None
    lineage_id: UUID | None = None
    version: int = 1
    event_at: datetime | None = None
    event_precision: str | None = None
    is_hot: bool = False
    repeats: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates in order of their ranking, of the kinds that were asked for; `order` are their positions."""

    evidence: Evidence
    candidates: Candidates
    ranking: Ranking
    order: Places

    def places(self, position: int) -> tuple[Place, ...]:
        """Return (conversation, seq) of the turns that a candidate stands for, in the order they were said."""
        candidates, turns = self.candidates, len(self.evidence.turns)
        kind = candidates.kinds[position]
        if kind == TURN:
            row = self.evidence.turns[position]
            return ((uuid_of(row["conversation_id"]), int(row["seq"])),)
        if kind == PAGE:
            row = self.evidence.pages[position - turns - len(self.evidence.knowledge)]
            where = uuid_of(row["conversation_id"])
            return tuple((where, seq) for seq in range(int(row["first_seq"]), int(row["last_seq"]) + 1))
        cited = self.evidence.sources[candidates.lenders[turns:] == position]
        return tuple((uuid_of(row["conversation_id"]), int(row["seq"])) for row in cited)

    def position_of_turn(self, position: int) -> int | None:
        """Return the turn among the candidates that this knowledge cites, when it is one turn and no more."""
        cites = np.flatnonzero(self.candidates.lenders == position)
        if len(cites) != 1:
            return None
        turns = self.candidates.turns
        at = turns.find(self.candidates.conversations[cites], self.candidates.seqs[cites])[0]
        return int(at) if at >= 0 else None


@dataclass(slots=True)
class _Texts:
    """What was read of the candidates so far: by position, and turns by place."""

    turns: dict[Place, FoundTurn] = field(default_factory=dict)
    knowledge: dict[UUID, FoundKnowledge] = field(default_factory=dict)
    pages: dict[UUID, FoundPage] = field(default_factory=dict)

    def read(self, connection: Connection, key: ScopeKey, ranked: Ranked, positions: Places) -> None:
        """Read the texts of candidates and of every turn they stand for."""
        ids = {
            kind: [uuid_at(ranked.candidates.owner_ids, place) for place in positions[kinds == kind]]
            for kinds in (ranked.candidates.kinds[positions],)
            for kind in (KNOWLEDGE, PAGE)
        }
        places = {place for position in positions for place in ranked.places(position)} - self.turns.keys()
        self.turns |= read_turns_at(connection, key, sorted(places))
        self.knowledge |= read_knowledge(connection, key, ids[KNOWLEDGE])
        self.pages |= read_pages(connection, key, ids[PAGE])


def describe(connection: Connection, key: ScopeKey, ranked: Ranked, *, limit: int) -> tuple[Result, ...]:
    """Return the first `limit` results of a ranking, with near-duplicates merged and sources named."""
    kept: dict[int, list[FoundKnowledge]] = {}
    texts = _Texts()
    for start in range(0, len(ranked.order), limit + SPARE):
        positions = ranked.order[start : start + limit + SPARE]
        texts.read(connection, key, ranked, positions)
        if _keep(kept, ranked, texts, positions, limit=limit):
            break
    return tuple(_result(ranked, texts, position, repeats) for position, repeats in kept.items())


def at_least(results: Sequence[Result], min_score: float) -> tuple[Result, ...]:
    """Return the results with that score or a higher one."""
    return tuple(result for result in results if result.score >= min_score)


def as_result(turn: FoundTurn) -> Result:
    """Return a turn as a result without a score, for the recent turns of a context."""
    return _of_turn(turn, (), score=0.0)


def of_statement(item: FoundKnowledge, sources: tuple[FoundTurn, ...]) -> Result:
    """Return a statement as a result without a score, for a look into the past."""
    return _of_knowledge(item, sources, score=0.0)


def _keep(
    kept: dict[int, list[FoundKnowledge]], ranked: Ranked, texts: _Texts, positions: Places, *, limit: int
) -> bool:
    """Walk down the ranking; knowledge that repeats a turn it cites gives its place to that turn, or adds to it.

    A correction says more than its turn: it names the turn that was wrong.
    """
    corrected = _corrected_turns(ranked, texts, positions)
    for position in map(int, positions):
        if len(kept) >= limit:
            return True
        for correction in corrected.get(position, ()):
            kept.setdefault(correction, [])
        item = None
        if ranked.candidates.kinds[position] == KNOWLEDGE:
            item = texts.knowledge[uuid_at(ranked.candidates.owner_ids, position)]
        repeated = _repeated_turn(ranked, texts, position, item) if item and item.kind != "correction" else None
        if item and repeated is not None:
            kept.setdefault(repeated, []).append(item)
        else:
            kept.setdefault(position, [])
    return len(kept) >= limit


def _corrected_turns(ranked: Ranked, texts: _Texts, positions: Places) -> dict[int, list[int]]:
    """Return for each turn that a correction cites where that correction is: it goes before both of its turns."""
    cited: dict[Place, list[int]] = {}
    for position in map(int, positions):
        if ranked.candidates.kinds[position] == KNOWLEDGE:
            item = texts.knowledge[uuid_at(ranked.candidates.owner_ids, position)]
            for place in ranked.places(position) if item.kind == "correction" and item.status == "active" else ():
                cited.setdefault(place, []).append(position)
    turns = [int(position) for position in positions if ranked.candidates.kinds[position] == TURN] if cited else []
    return {turn: cited[place] for turn in turns for place in ranked.places(turn)[:1] if place in cited}


def _repeated_turn(ranked: Ranked, texts: _Texts, position: int, item: FoundKnowledge) -> int | None:
    at = ranked.position_of_turn(position) if item.status == "active" else None
    if at is None or at not in ranked.order:
        return None
    turn = texts.turns[ranked.places(at)[0]]
    said = lexical_terms(item.content, item.lang)
    heard = lexical_terms(f"{turn.speaker} {turn.content} {turn.occurred_at:%Y-%m-%d}", turn.lang)
    if not said or len(heard) > MUCH_LONGER * len(said):
        return None
    shared = sum(1 for term in said if term in set(heard))
    return at if shared >= REPEATS_FROM * len(said) else None


def _result(ranked: Ranked, texts: _Texts, position: int, repeats: Sequence[FoundKnowledge]) -> Result:
    places = ranked.places(position)
    sources = tuple(texts.turns[place] for place in places if place in texts.turns)
    result = _content(ranked, texts, position, sources)
    dated = next((item for item in repeats if item.event_at), None)
    features = ranked.candidates.features
    return replace(
        result,
        signals=ranked.ranking.signals_of(position),
        features={name: float(column[position]) for name, column in features.items() if not np.isnan(column[position])},
        repeats=tuple(item.knowledge_id for item in repeats),
        event_at=_local(dated.event_at, sources) if dated else result.event_at,
        event_precision=dated.event_precision if dated else result.event_precision,
    )


def _content(ranked: Ranked, texts: _Texts, position: int, sources: tuple[FoundTurn, ...]) -> Result:
    owner_id, score = uuid_at(ranked.candidates.owner_ids, position), float(ranked.ranking.scores[position])
    kind = ranked.candidates.kinds[position]
    if kind == KNOWLEDGE:
        return _of_knowledge(texts.knowledge[owner_id], sources, score=score)
    if kind == PAGE:
        return _of_page(texts.pages[owner_id], sources, score=score)
    return _of_turn(texts.turns[ranked.places(position)[0]], sources, score=score)


def _of_turn(turn: FoundTurn, sources: tuple[FoundTurn, ...], *, score: float) -> Result:
    return Result(
        kind="turn",
        owner_id=turn.turn_id,
        score=score,
        signals={},
        features={},
        content=turn.content,
        speaker=turn.speaker,
        at=turn.occurred_at,
        conversation_id=turn.external_id,
        source_turns=sources or (turn,),
        is_hot=turn.is_hot,
    )


def _of_knowledge(item: FoundKnowledge, sources: tuple[FoundTurn, ...], *, score: float) -> Result:
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


def _of_page(page: FoundPage, sources: tuple[FoundTurn, ...], *, score: float) -> Result:
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


def _local(at: datetime | None, sources: Sequence[FoundTurn]) -> datetime:
    assert at is not None  # noqa: S101 - callers pass what they checked
    return at.astimezone(sources[0].occurred_at.tzinfo) if sources else at.astimezone(UTC)
