"""Restore: bring forgotten knowledge back, with its history, into every search, before its grace is over."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.conflicts import settle_restored
from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.truths import Truth
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.database import try_again
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.forgetting import find_source_pages, find_standing, restore_history
from memoryos_pipeline.store.knowledge import (
    find_live_rivals,
    find_scope,
    load_truths,
    move_scope,
    update_knowledge,
)
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.rollups import refresh_rollups
from memoryos_pipeline.store.vectors import remove_index_rows


def restore_knowledge(parts: Parts, tenant_id: UUID, knowledge_id: UUID) -> bool:
    """Bring a forgotten row back, reinforced now; False when it is not forgotten. Raises NotFoundError.

    When something newer took its place meanwhile, it comes back as history. An old version comes back together
    with the row that had replaced it.
    """
    return try_again(partial(_restore_once, parts, tenant_id, knowledge_id))


def _restore_once(parts: Parts, tenant_id: UUID, knowledge_id: UUID) -> bool:
    with parts.database.transaction(tenant_id) as connection:
        standing = find_standing(connection, tenant_id, knowledge_id)
        if standing is None or find_scope(connection, tenant_id, standing.scope_id, lock=True) is None:
            raise NotFoundError
        head_id = _forgotten_head(connection, tenant_id, knowledge_id)
        if head_id is None:
            return False
        governed = parts.under_policy(connection, tenant_id, standing.scope_id)
        _restore(governed, connection, tenant_id, standing.scope_id, head_id)
        return True


def _forgotten_head(connection: Connection, tenant_id: UUID, knowledge_id: UUID) -> UUID | None:
    """Return the last row of the chain of replacements that is forgotten; None when the first is not."""
    head: UUID | None = None
    at: UUID | None = knowledge_id
    while at is not None:
        standing = find_standing(connection, tenant_id, at)
        if standing is None or standing.status != "forgotten":
            break
        head, at = at, standing.superseded_by
    return head


def _restore(
    parts: Parts, connection: Connection, tenant_id: UUID, scope_id: UUID, knowledge_id: UUID
) -> None:  # fmt: skip
    truths = load_truths(connection, tenant_id, scope_id, ids=[knowledge_id])
    row = next(truth for truth in truths if truth.knowledge_id == knowledge_id)
    row = replace(row, last_reinforced_at=read_now(connection))
    settled = _settle(connection, tenant_id, scope_id, row)
    beaten = [truth for truth in settled if truth.knowledge_id != knowledge_id]
    # Whoever yields goes first: two live rows of one statement cannot exist, not even for a moment.
    update_knowledge(connection, tenant_id, truths=[*beaten, settled[0]], policy=parts.policy)
    remove_index_rows(connection, tenant_id, "knowledge", [truth.knowledge_id for truth in beaten])
    history = restore_history(connection, tenant_id, scope_id, knowledge_id)
    move_scope(connection, tenant_id, scope_id)
    restored = [knowledge_id, *history]
    owed = [Owed(WorkKind.EMBED, f"knowledge:{knowledge_id}", scope_id)] if settled[0].is_live else []
    pages = find_source_pages(connection, tenant_id, restored)
    owed += [Owed(WorkKind.EMBED, f"turns:{page}", scope_id) for page in pages]
    if parts.policy.rollups == "daily":
        refresh_rollups(connection, tenant_id, scope_id, page_ids=pages)
    owe(connection, tenant_id, owed, max_attempts=parts.max_attempts)
    record_events(connection, tenant_id, _events(scope_id, restored, beaten))


def _settle(connection: Connection, tenant_id: UUID, scope_id: UUID, row: Truth) -> list[Truth]:
    """Return the rows to write, the restored one first."""
    if row.superseded_by is not None:
        return [replace(row, status="superseded")]
    rivals = find_live_rivals(connection, tenant_id, scope_id, row)
    return settle_restored(row, rivals)


def _events(scope_id: UUID, restored: Sequence[UUID], beaten: Sequence[Truth]) -> list[Event]:
    came_back = [Event("knowledge_restored", scope_id, subject_id=each) for each in restored]
    yielded = [
        Event("knowledge_superseded", scope_id, subject_id=truth.knowledge_id, related_id=truth.superseded_by)
        for truth in beaten
    ]
    return [*came_back, *yielded]
