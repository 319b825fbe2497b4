"""Gathers what may answer a question in one read: dense and lexical candidates, their neighbours, the fresh tail."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Vector
from memoryos_pipeline.recall.bm25 import Owner, TermIndex, split_terms
from memoryos_pipeline.recall.question import Question
from memoryos_pipeline.store.search import (
    FoundKnowledge,
    FoundPage,
    FoundTurn,
    Frame,
    ScopeKey,
    read_knowledge,
    read_pages,
    read_postings,
    read_statistics,
    read_turns,
)
from memoryos_pipeline.store.vectors import nearest

DENSE_LIMIT = 400
LEXICAL_LIMIT = 400
"""Candidates an arm brings at most; a scope with fewer turns is searched whole."""
MAX_SPANS = 16
ALL_TIME = (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC))
POSTING_BUDGET = 4_000
"""Postings read at most to find candidates; terms beyond it only score what others found."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything recorded about the candidates of one question. `cosines` holds the dense arm's finds."""

    question: Question
    frame: Frame
    index: TermIndex
    cosines: dict[Owner, float]
    turns: dict[tuple[UUID, int], FoundTurn]
    knowledge: tuple[FoundKnowledge, ...]
    pages: tuple[FoundPage, ...]

    lowest_cosine: float | None

    def cosine(self, owner: Owner, *, is_indexed: bool) -> float | None:
        """Return the cosine; for an indexed owner beyond the arm's limit the lowest found; None without a vector."""
        return self.cosines.get(owner, self.lowest_cosine if is_indexed else None)


@dataclass(frozen=True, slots=True)
class Arms:
    """Which kinds are searched, with which vector (None leaves the dense arm out), history or only what is live."""

    kinds: tuple[str, ...]
    vector: Vector | None
    include_history: bool = False


def gather(connection: Connection, key: ScopeKey, question: Question, *, frame: Frame, arms: Arms) -> Evidence:
    """Run every arm and read the union."""
    kinds = arms.kinds
    cosines = _dense(connection, key, frame=frame, arms=arms)
    index, common = _lexical(connection, key, question.terms, kinds=kinds)
    owners = list(dict.fromkeys([*cosines, *index.best(LEXICAL_LIMIT)]))
    turns = read_turns(connection, key, _ids(owners, "turn"), spans=_spans(question, cosines))
    if common:
        wanted = [owner_id for _, owner_id in owners] + [turn.turn_id for turn in turns]
        index.add_postings(read_postings(connection, key, kinds=kinds, terms=common, owner_ids=wanted))
    _take_in_turns(index, turns)
    knowledge_ids, page_ids = _ids(owners, "knowledge"), _ids(owners, "page")
    return Evidence(
        question=question,
        frame=frame,
        index=index,
        cosines=cosines,
        lowest_cosine=min(cosines.values(), default=None),
        turns={(turn.conversation_id, turn.seq): turn for turn in turns},
        knowledge=tuple(
            read_knowledge(connection, key, knowledge_ids, include_history=arms.include_history)
            if knowledge_ids
            else ()
        ),
        pages=tuple(read_pages(connection, key, page_ids) if page_ids else ()),
    )


def _spans(question: Question, cosines: dict[Owner, float]) -> list[tuple[datetime, datetime]]:
    """Return the time spans whose turns are candidates; without a dense arm the newest turns are, too."""
    spans = [(window.start, window.end) for window in question.windows[:MAX_SPANS]]
    return spans if cosines else [*spans, ALL_TIME]


def _knowledge(connection: Connection, key: ScopeKey, ids: Sequence[UUID], arms: Arms) -> list[FoundKnowledge]:
    return read_knowledge(connection, key, ids, include_history=arms.include_history)


def _dense(connection: Connection, key: ScopeKey, *, frame: Frame, arms: Arms) -> dict[Owner, float]:
    if arms.vector is None or frame.space_id is None:
        return {}
    found = nearest(connection, key.tenant_id, key.scope_id, frame.space_id, arms.kinds, arms.vector, DENSE_LIMIT)
    return {(kind, owner_id): cosine for kind, owner_id, cosine in found}


def _lexical(
    connection: Connection, key: ScopeKey, terms: Sequence[str], *, kinds: Sequence[str]
) -> tuple[TermIndex, list[str]]:
    statistics = read_statistics(connection, key, kinds=kinds, terms=terms)
    index = TermIndex(statistics, terms)
    driving, common = split_terms(statistics, terms, kinds=kinds, budget=POSTING_BUDGET)
    if driving:
        index.add_postings(read_postings(connection, key, kinds=kinds, terms=driving))
    return index, common


def _take_in_turns(index: TermIndex, turns: Sequence[FoundTurn]) -> None:
    for turn in turns:
        if turn.terms is None:
            index.add_fresh(("turn", turn.turn_id), lexical_terms(turn.content, turn.lang))
        else:
            index.add_length(("turn", turn.turn_id), turn.terms)


def _ids(owners: Sequence[Owner], kind: str) -> list[UUID]:
    return [owner_id for owner_kind, owner_id in owners if owner_kind == kind]
