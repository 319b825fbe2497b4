"""Gathers what may answer a question in one read: dense and lexical candidates, their neighbours, the fresh tail."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.domain.ranking import OwnerKind
from memoryos_pipeline.models.lexical import lexical_terms, normalize_text
from memoryos_pipeline.models.protocols import Vector
from memoryos_pipeline.recall.bm25 import TermIndex, split_terms
from memoryos_pipeline.recall.columns import (
    NO_IDS,
    Flags,
    Floats,
    Ids,
    Places,
    Records,
    find,
    floats_of,
    id_array,
    ids_of,
    take,
    unpack,
    uuids_of,
)
from memoryos_pipeline.recall.filters import Gate
from memoryos_pipeline.recall.question import Question
from memoryos_pipeline.store.entities import normalize_name
from memoryos_pipeline.store.entity_walk import LINKED_LAYOUT, read_linked
from memoryos_pipeline.store.matching import EVER
from memoryos_pipeline.store.search import (
    DATED_LIMIT,
    KNOWLEDGE_LAYOUT,
    PAGE_LAYOUT,
    POSTING_LAYOUT,
    SOURCE_LAYOUT,
    TURN_LAYOUT,
    Frame,
    PackedOthers,
    PackedTurns,
    ScopeKey,
    Wanted,
    read_others,
    read_postings,
    read_postings_of,
    read_statistics,
    read_turns,
)
from memoryos_pipeline.store.vectors import NEAR_LAYOUT, Near, read_nearest

KINDS: tuple[OwnerKind, ...] = ("turn", "knowledge", "page")
"""The kinds by their numbers in every column."""
TURN, KNOWLEDGE, PAGE = range(3)
DENSE_LIMIT = 400
LEXICAL_LIMIT = 400
"""Candidates an arm brings at most."""
WHOLE_SCOPE = 1_500
"""A memory of so many turns is scored whole: to read all of it by a range costs less than to look up a part."""
MAX_SPANS = 16
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
ALL_TIME = EVER
POSTING_BUDGET = 4_000
"""Postings read at most to find candidates; terms beyond it only score what others found."""
EXACT_UP_TO = 50_000
"""Turns of a memory up to which every vector is compared; beyond, an approximate index is used where there is one.

To compare a thousand vectors costs 0.8 ms, and to walk to the nearest 400 of any number about 40.
"""
WHOLE_BUDGET = 20_000
"""The same where the whole memory is scored and nothing has to be found."""


@dataclass(frozen=True, slots=True)
class Dense:
    """What the dense arm found; empty without a vector."""

    owners: Ids
    kinds: Places
    cosines: Floats

    def cosine(self, owners: Ids, *, is_indexed: bool | Flags = True) -> Floats:
        """Return cosines; for an indexed owner beyond the arm's limit the lowest found; NaN without a vector."""
        found = take(self.cosines, find(self.owners, owners))
        lowest = self.cosines.min() if len(self.cosines) else np.nan
        return np.where(np.isnan(found) & is_indexed, lowest, found)


@dataclass(frozen=True, slots=True)
class Linked:
    """Statements that the entities of a question bring, how strongly, and how many stand on the same entity."""

    owners: Ids
    strength: Floats
    shared_by: Floats


NOTHING_LINKED = Linked(NO_IDS, np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything recorded about the candidates of one question.

    `turns` are records of TURN_LAYOUT in the order of conversations and turns; `fresh` are the positions of those
    that are not indexed, `texts`, `fresh_counts` and `fresh_lengths` what they say. The others are records of their
    layouts.
    """

    question: Question
    frame: Frame
    index: TermIndex
    dense: Dense
    turns: Records
    fresh: Places
    texts: Sequence[str]
    fresh_counts: Floats
    fresh_lengths: Floats
    knowledge: Records
    actors: Sequence[str]
    knowledge_texts: Sequence[str | None]
    sources: Records
    pages: Records
    linked: Linked = NOTHING_LINKED

    @property
    def has_indexed_turns(self) -> bool:
        """Whether any candidate is in the index."""
        return len(self.fresh) < len(self.turns)


@dataclass(frozen=True, slots=True)
class Arms:
    """Which kinds are searched, with which vector (None leaves the dense arm out), history or only what is live.

    `alone` are the kinds of the results when turns are not among them: they are not crowded out by turns. `gate` is
    all that may be a result; the others still lend it their context. `with_entities` asks for the statements that the
    entities of the question bring.
    """

    kinds: tuple[str, ...]
    vector: Vector | None
    include_history: bool = False
    alone: tuple[str, ...] = ()
    gate: Gate | None = None
    with_entities: bool = False


def gather(connection: Connection, key: ScopeKey, question: Question, *, frame: Frame, arms: Arms) -> Evidence:
    """Run every arm and read the union."""
    index, common = _lexical(connection, key, question.terms, kinds=arms.kinds)
    dense = _dense(connection, key, question, frame=frame, arms=arms, turns=index.count(TURN))
    best = index.best(LEXICAL_LIMIT)
    near = slice(DENSE_LIMIT if _compares_all(frame, arms) else None)
    owners = np.concatenate([dense.owners[near], index.owners[best]])
    kinds = np.concatenate([dense.kinds[near], index.kinds[best]])
    linked = _linked(connection, key, question) if arms.with_entities else NOTHING_LINKED
    owners, kinds = np.append(owners, linked.owners), np.append(kinds, np.full(len(linked.owners), KNOWLEDGE))
    if arms.gate is not None:
        dense, admitted, admitted_kinds = _gated(connection, key, index, dense, frame=frame, arms=arms)
        owners, kinds = np.concatenate([owners, admitted]), np.concatenate([kinds, admitted_kinds])
    turn_ids = None if index.count(TURN) <= WHOLE_SCOPE else owners[kinds == TURN]
    packed = read_turns(connection, key, _wanted(question, frame, turn_ids, dense=dense))
    turns = unpack(packed.records, TURN_LAYOUT)
    if common:
        scored = np.concatenate([owners[kinds != TURN], ids_of(turns)])
        scored_kinds = np.concatenate([kinds[kinds != TURN], np.full(len(turns), TURN)])
        _add_common(connection, key, index, common, kinds=arms.kinds, owners=(scored, scored_kinds))
    others = _others(connection, key, owners, kinds, question=question, arms=arms)
    evidence = _evidence(question, frame, index, dense, turns=(turns, packed), others=others)
    return replace(evidence, linked=linked)


def _wanted(question: Question, frame: Frame, turn_ids: Ids | None, *, dense: Dense) -> Wanted:
    actor_names = [name for name, _ in frame.speakers if normalize_text(name) == question.actor]
    spans = _spans(question, is_dense=len(dense.owners) > 0)
    return Wanted(None if turn_ids is None else id_array(turn_ids), spans, actor_names)


def _spans(question: Question, *, is_dense: bool) -> list[tuple[datetime, datetime]]:
    """Return the time spans whose turns are candidates; without a dense arm the newest turns are, too."""
    spans = [(window.start, window.end) for window in question.windows[:MAX_SPANS]]
    return spans if is_dense else [*spans, ALL_TIME]


def _others(
    connection: Connection, key: ScopeKey, owners: Ids, kinds: Places, *, question: Question, arms: Arms
) -> PackedOthers:
    if (kinds == TURN).all():
        return PackedOthers()
    return read_others(
        connection, key, knowledge_ids=id_array(owners[kinds == KNOWLEDGE]), page_ids=id_array(owners[kinds == PAGE]),
        include_history=arms.include_history, with_texts=question.asks_when,
    )  # fmt: skip


def _evidence(
    question: Question, frame: Frame, index: TermIndex, dense: Dense, *, turns: tuple[Records, PackedTurns],
    others: PackedOthers,
) -> Evidence:  # fmt: skip
    records, packed = turns
    fresh = np.flatnonzero(records["terms"] < 0)
    words = [lexical_terms(text, "und") for text in packed.texts]
    return Evidence(
        question=question,
        frame=frame,
        index=index,
        dense=dense,
        turns=records,
        fresh=fresh,
        texts=packed.texts,
        fresh_counts=index.add_fresh("turn", words),
        fresh_lengths=np.array(list(map(len, words)), dtype=np.float64),
        knowledge=unpack(others.knowledge, KNOWLEDGE_LAYOUT),
        actors=others.actors,
        knowledge_texts=others.texts,
        sources=unpack(others.sources, SOURCE_LAYOUT),
        pages=unpack(others.pages, PAGE_LAYOUT),
    )


def _dense(connection: Connection, key: ScopeKey, question: Question, *, frame: Frame, arms: Arms, turns: int) -> Dense:
    if arms.vector is None or frame.space_id is None:
        return Dense(NO_IDS, np.empty(0, dtype=np.intp), np.empty(0))
    near = Near(frame.space_id, arms.kinds, arms.vector.tolist(), DENSE_LIMIT)
    if _compares_all(frame, arms):
        return _as_dense(
            unpack(read_nearest(connection, key.bind(), replace(near, limit=None)), NEAR_LAYOUT), arms.kinds
        )
    packed = [read_nearest(connection, key.bind(), near, approximate=frame.has_hnsw and turns > EXACT_UP_TO)]
    if question.windows and turns > WHOLE_SCOPE:
        span = (question.windows[0].start, question.windows[0].end)
        packed.append(read_nearest(connection, key.bind(), replace(near, limit=DATED_LIMIT, span=span)))
    if arms.alone:
        packed.append(read_nearest(connection, key.bind(), near, of=arms.alone))
    found = unpack(b"".join(packed), NEAR_LAYOUT)
    if len(packed) > 1:
        found = found[np.sort(np.unique(ids_of(found), return_index=True)[1])]
    return _as_dense(found, arms.kinds)


def _compares_all(frame: Frame, arms: Arms) -> bool:
    """Tell whether so much passes a gate that every vector is compared, once for what passes and for its context."""
    return arms.gate is not None and len(arms.gate) > WHOLE_SCOPE and not _walks(frame, arms.gate)


def _walks(frame: Frame, gate: Gate) -> bool:
    return frame.has_hnsw and len(gate) > EXACT_UP_TO


def _linked(connection: Connection, key: ScopeKey, question: Question) -> Linked:
    folded = normalize_name(question.text)
    words = [word.removesuffix("'s") for word in WORD.findall(folded.replace("’", "'"))]
    found = unpack(read_linked(connection, key, question=folded, words=words), LINKED_LAYOUT)
    return Linked(ids_of(found), floats_of(found, "strength"), floats_of(found, "owners"))


def _gated(
    connection: Connection, key: ScopeKey, index: TermIndex, dense: Dense, *, frame: Frame, arms: Arms
) -> tuple[Dense, Ids, Places]:
    """Return cosines with those of what passes the gate added, and candidates that pass: all, or each arm's best.

    They come beside what the arms found without the gate, which is the context they stand in.
    """
    gate = arms.gate
    assert gate is not None  # noqa: S101 - for the type checker
    found = _gated_dense(connection, key, dense, frame=frame, arms=arms)
    passing = np.flatnonzero(gate.admits(found.owners))
    added = passing[find(dense.owners, found.owners[passing]) < 0]
    beside = Dense(
        np.concatenate([dense.owners, found.owners[added]]),
        np.concatenate([dense.kinds, found.kinds[added]]),
        np.concatenate([dense.cosines, found.cosines[added]]),
    )
    if len(gate) <= WHOLE_SCOPE:
        return beside, gate.owners, gate.kinds
    nearest = passing[:DENSE_LIMIT]
    worded = index.best(len(index.owners))
    worded = worded[gate.admits(index.owners[worded])][:LEXICAL_LIMIT]
    newest = slice(0, DENSE_LIMIT - len(nearest))
    owners = [found.owners[nearest], index.owners[worded], gate.owners[newest]]
    return (
        beside,
        np.concatenate(owners),
        np.concatenate([found.kinds[nearest], index.kinds[worded], gate.kinds[newest]]),
    )


def _gated_dense(connection: Connection, key: ScopeKey, dense: Dense, *, frame: Frame, arms: Arms) -> Dense:
    """Return the nearest of what passes the gate, best first, perhaps among others."""
    gate = arms.gate
    assert gate is not None  # noqa: S101 - for the type checker
    has_all = len(dense.owners) < DENSE_LIMIT or _compares_all(frame, arms)
    if arms.vector is None or frame.space_id is None or has_all:
        return dense
    is_walked = _walks(frame, gate)
    limit = DENSE_LIMIT if is_walked else None
    near = Near(frame.space_id, arms.kinds, arms.vector.tolist(), limit, among=uuids_of(gate.owners))
    return _as_dense(unpack(read_nearest(connection, key.bind(), near, approximate=is_walked), NEAR_LAYOUT), arms.kinds)


def _as_dense(found: Records, kinds: Sequence[str]) -> Dense:
    return Dense(ids_of(found), _numbers(kinds)[found["kind"] - 1], found["cosine"].astype(np.float64))


def _lexical(
    connection: Connection, key: ScopeKey, terms: Sequence[str], *, kinds: Sequence[str]
) -> tuple[TermIndex, list[str]]:
    statistics = read_statistics(connection, key, kinds=kinds, terms=terms)
    index = TermIndex(statistics, terms, KINDS)
    budget = WHOLE_BUDGET if index.count(TURN) <= WHOLE_SCOPE else POSTING_BUDGET
    driving, common = split_terms(statistics, terms, kinds=kinds, budget=budget)
    if driving:
        _add(index, read_postings(connection, key, kinds=kinds, terms=driving), terms=driving, kinds=kinds)
    return index, common


def _add_common(
    connection: Connection, key: ScopeKey, index: TermIndex, terms: Sequence[str], *, kinds: Sequence[str],
    owners: tuple[Ids, Places],
) -> None:  # fmt: skip
    ids, first = np.unique(owners[0], return_index=True)
    named = "{" + ",".join(KINDS[kind] for kind in owners[1][first]) + "}"
    packed = read_postings_of(connection, key, kinds=kinds, terms=terms, owners=(id_array(ids), named))
    _add(index, packed, terms=terms, kinds=kinds)


def _add(index: TermIndex, packed: bytes, *, terms: Sequence[str], kinds: Sequence[str]) -> None:
    found = unpack(packed, POSTING_LAYOUT)
    places = np.array([index.place(term) for term in terms], dtype=np.intp)
    index.add(
        ids_of(found),
        _numbers(kinds)[found["kind"] - 1],
        places[found["term"] - 1],
        found["tf"].astype(np.float64),
        found["length"].astype(np.float64),
    )


def _numbers(kinds: Sequence[str]) -> Places:
    return np.array([KINDS.index(kind) for kind in kinds], dtype=np.intp)
