"""Distill: find on a page what is worth knowing, each statement citing turns; an explicit nothing is an answer."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import get_args
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.heat import Heat, Moment, is_cold_at
from memoryos_pipeline.domain.knowledge import (
    CORRECTED_TURNS,
    Candidate,
    Distillate,
    KnowledgeKind,
    TraitDelta,
)
from memoryos_pipeline.domain.pages import PageText
from memoryos_pipeline.domain.relations import are_triples
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.candidates import (
    Extraction,
    Found,
    candidate_payload,
    find_extraction,
    mark_extracted,
    replace_candidates,
)
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.heat import archive_pages
from memoryos_pipeline.store.journal import WorkJournal
from memoryos_pipeline.store.knowledge import ScopeRow, find_scope, next_extract_ordinal
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.pages import read_page
from memoryos_pipeline.store.vectors import remove_index_rows

KINDS = frozenset(get_args(KnowledgeKind))


def distill_page(parts: Parts, lease: Lease) -> None:
    """Distill the page the subject names, once per extractor.

    Raises ModelError, InvalidOutputError when a statement cites nothing, FencedError when the lease was lost.
    """
    page_id = UUID(lease.subject_key)
    with parts.database.transaction(lease.tenant_id) as connection:
        reading = read_page(connection, lease.tenant_id, page_id)
        state = find_extraction(connection, lease.tenant_id, page_id)
        policy = parts.under_policy(connection, lease.tenant_id, lease.scope_id).policy
    is_owed = state is not None and state.extracted_by != parts.language_model.name
    text = replace(reading.text, relations_wanted=policy.graph == "triples") if reading is not None else None
    found = _think(parts, lease, text) if text is not None and is_owed else None
    with parts.database.transaction(lease.tenant_id) as connection:
        if found is not None:
            governed = parts.under_policy(connection, lease.tenant_id, lease.scope_id)
            _save(governed, lease, connection, page_id, found)
        complete(connection, lease)


def _think(parts: Parts, lease: Lease, page: PageText) -> Found:
    shown = shown_text(page)
    if not shown.turns:
        return Found()
    distillate = parts.language_model.distill(shown, journal=WorkJournal(parts.database, lease))
    return accept_distillate(distillate, shown)


def shown_text(page: PageText) -> PageText:
    """Return what a model may learn from: no recalled memories and no boot text, and nothing that can still change."""
    turns = tuple(turn for turn in page.turns if turn.kind == "normal")
    previous = tuple(turn for turn in page.previous_turns if turn.kind == "normal")
    return replace(page, turns=turns, previous_turns=previous)


def accept_distillate(distillate: Distillate, shown: PageText) -> Found:
    """Check a model's answer against the page it was shown. Raises InvalidOutputError for the whole answer."""
    candidates = tuple(enumerate(_accept(candidate, shown) for candidate in distillate.candidates))
    for delta in distillate.traits:
        _check_trait(delta, len(candidates))
    return Found(candidates, distillate.traits)


def _accept(candidate: Candidate, shown: PageText) -> Candidate:
    """Return the candidate dated by the last turn it cites: when it was said is not for a model to decide."""
    said_at = {turn.seq: turn.occurred_at for turn in shown.turns}
    problem = _problem(candidate, said_at)
    if problem:
        raise InvalidOutputError(f"a candidate {problem}")
    dated = replace(candidate, turn_at=max(said_at[seq] for seq in candidate.source_seqs))
    return _with_corrected_turn(dated, shown)


def _with_corrected_turn(candidate: Candidate, shown: PageText) -> Candidate:
    """Let a correction name the assistant's turn that was wrong: the last that said the wrong word, or the last at all.

    Without a wrong word only what was said right before can be meant.
    """
    if candidate.kind != "correction":
        return candidate
    wrong = str(candidate.attributes.get("wrong") or "").casefold()
    first = min(candidate.source_seqs)
    before = [turn for turn in (*shown.previous_turns, *shown.turns) if turn.role == "assistant" and turn.seq < first]
    said = [turn.seq for turn in before if wrong in turn.content.casefold() and (wrong or turn.seq == first - 1)]
    if not said:
        return candidate
    return replace(candidate, attributes={**candidate.attributes, CORRECTED_TURNS: said[-1:]})


def _problem(candidate: Candidate, said_at: Mapping[int, datetime]) -> str | None:
    if not candidate.source_seqs or set(candidate.source_seqs) - set(said_at):
        return "cites turns that are not on its page"
    if not candidate.content.strip() or not _is_storable(candidate):
        return "has a content that cannot be stored"
    if candidate.kind not in KINDS or not 0.0 <= candidate.importance <= 1.0:
        return "has an unknown kind or an importance outside 0..1"
    if candidate.event_at is not None and candidate.event_at.tzinfo is None:
        return "has an event time without a zone"
    if not are_triples(candidate.attributes):
        return "has relations that are no triples"
    return None


def _is_storable(candidate: Candidate) -> bool:
    written = json.dumps(candidate_payload(candidate), ensure_ascii=False)
    try:
        written.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in written


def _check_trait(delta: TraitDelta, candidates: int) -> None:
    cites_candidates = delta.evidence and all(0 <= ordinal < candidates for ordinal in delta.evidence)
    if not cites_candidates or not 0.0 <= delta.confidence <= 1.0:
        message = "a trait stands on no candidate of its page, or has a confidence outside 0..1"
        raise InvalidOutputError(message)


def _save(parts: Parts, lease: Lease, connection: Connection, page_id: UUID, found: Found) -> None:
    tenant_id, scope_id = lease.tenant_id, lease.scope_id
    scope = find_scope(connection, tenant_id, scope_id, lock=True)
    state = find_extraction(connection, tenant_id, page_id, lock=True)
    if scope is None or state is None or state.extracted_by == parts.language_model.name:
        return
    ordinal = _place_in_line(lease, connection, scope, state)
    replace_candidates(connection, tenant_id, scope_id, page=page_id, ordinal=ordinal, found=found)
    count = len(found.candidates)
    mark_extracted(connection, tenant_id, page_id, ordinal=ordinal, extracted_by=parts.language_model.name, count=count)
    events = [_event("page_distilled", lease, state, amount=float(count))]
    if _leaves_warm(parts, state, read_now(connection)):
        archive_pages(connection, tenant_id, [page_id])
        remove_index_rows(connection, tenant_id, "page", [page_id])
        events.append(_event("page_archived", lease, state))
    kinds = [WorkKind.MERGE]
    if parts.policy.knowledge_capacity is not None:
        kinds.append(WorkKind.FORGET)
    owed = [Owed(kind, str(scope_id), scope_id) for kind in kinds]
    owe(connection, tenant_id, owed, max_attempts=parts.max_attempts)
    record_events(connection, tenant_id, events)


def _place_in_line(lease: Lease, connection: Connection, scope: ScopeRow, state: Extraction) -> int:
    """Return the page's place in the merging line; one that was passed over meanwhile goes to the end of it."""
    if state.extract_ordinal is not None and state.extract_ordinal > scope.merged_ordinal:
        return state.extract_ordinal
    return next_extract_ordinal(connection, lease.tenant_id, lease.scope_id)


def _leaves_warm(parts: Parts, state: Extraction, now: datetime) -> bool:
    if state.tier != "warm" or state.pinned_at is not None:
        return False
    if state.distill_cause != "cooled":
        return state.distill_cause == "evicted"
    heat, moment = Heat(state.heat, state.heat_at, state.heat_tick), Moment(now, state.scope_ticks)
    return is_cold_at(heat, moment, sealed_at=state.sealed_at, policy=parts.policy)


def _event(kind: str, lease: Lease, state: Extraction, *, amount: float | None = None) -> Event:
    return Event(
        kind,
        lease.scope_id,
        subject_id=state.page_id,
        conversation_id=state.conversation_id,
        amount=amount,
        work_id=lease.work_id,
    )
