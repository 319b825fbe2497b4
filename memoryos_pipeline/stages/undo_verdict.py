"""Undo: take one decision back, the rows it changed exactly as they were, in a new decision that can be undone too."""

from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.forgetting import Hold, ends_at
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.undoing import (
    PERSON,
    CannotUndoError,
    Standing,
    Swap,
    plan_undo,
    read_source,
    read_swaps,
    record_swaps,
)
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import try_again
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.knowledge import find_scope, move_scope
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.relations import follow_knowledge
from memoryos_pipeline.store.vectors import remove_index_rows
from memoryos_pipeline.store.verdicts import (
    StoredVerdict,
    VerdictRow,
    drop_sources,
    find_verdict,
    lock_standings,
    mark_undone,
    record_verdicts,
    write_standings,
)


def undo_verdict(parts: Parts, tenant_id: UUID, verdict_id: UUID) -> UUID:
    """Take a decision back; return the id of the decision that did so. Raises NotFoundError, CannotUndoError."""
    return try_again(partial(_undo_once, parts, tenant_id, verdict_id))


def _undo_once(parts: Parts, tenant_id: UUID, verdict_id: UUID) -> UUID:
    with parts.database.transaction(tenant_id) as connection:
        verdict = find_verdict(connection, tenant_id, verdict_id)
        if verdict is None or find_scope(connection, tenant_id, verdict.scope_id, lock=True) is None:
            raise NotFoundError
        if not mark_undone(connection, tenant_id, verdict_id):
            raise CannotUndoError("this decision was undone already")
        record = verdict.evidence.get("undo") or {}
        swaps = read_swaps(record)
        current = lock_standings(connection, tenant_id, [swap.after.knowledge_id for swap in swaps])
        done = plan_undo(swaps, current)
        governed = parts.under_policy(connection, tenant_id, verdict.scope_id)
        _write(governed, connection, tenant_id, verdict, done)
        source = read_source(record)
        if source is not None:
            drop_sources(
                connection, tenant_id, knowledge_id=source.knowledge_id, seqs=source.seqs,
                page_id=verdict.evidence["page_id"],
            )  # fmt: skip
        return _keep(connection, tenant_id, verdict, done)


def _write(parts: Parts, connection: Connection, tenant_id: UUID, verdict: StoredVerdict, done: list[Swap]) -> None:
    write_standings(connection, tenant_id, [(swap.after, _end_of(swap.after, parts.policy)) for swap in done])
    gone = [swap.after.knowledge_id for swap in done if not swap.after.is_live]
    back = [swap.after.knowledge_id for swap in done if swap.after.is_live and not swap.before.is_live]
    remove_index_rows(connection, tenant_id, "knowledge", gone)
    owed = [Owed(WorkKind.EMBED, f"knowledge:{each}", verdict.scope_id) for each in back]
    owe(connection, tenant_id, owed, max_attempts=parts.max_attempts)
    follow_knowledge(connection, tenant_id, [swap.after.knowledge_id for swap in done])
    move_scope(connection, tenant_id, verdict.scope_id)
    events = [Event("knowledge_restored", verdict.scope_id, subject_id=each) for each in back]
    events += [
        Event("knowledge_superseded", verdict.scope_id, subject_id=swap.after.knowledge_id,
              related_id=swap.after.superseded_by)
        for swap in done if swap.before.is_live and not swap.after.is_live
    ]  # fmt: skip
    record_events(connection, tenant_id, events)


def _end_of(row: Standing, policy: Policy) -> datetime | None:
    hold = Hold(
        key=str(row.knowledge_id), strength_days=row.strength_days, last_reinforced_at=row.last_reinforced_at,
        importance=row.importance, pinned=row.pinned_at is not None,
    )  # fmt: skip
    return ends_at(hold, policy)


def _keep(connection: Connection, tenant_id: UUID, verdict: StoredVerdict, done: list[Swap]) -> UUID:
    undo_id = derive_id("verdict", verdict.verdict_id, "undo")
    evidence = {
        "reason": f"undo of {verdict.verdict_id}",
        "page_id": verdict.evidence.get("page_id"),
        "undoes": str(verdict.verdict_id),
        "undo": record_swaps(done),
    }
    row = VerdictRow(undo_id, "COEXIST", verdict.new_id, verdict.old_id, verdict.new_content, evidence)
    record_verdicts(connection, tenant_id, verdict.scope_id, rows=[row], decided_by=PERSON)
    return undo_id
