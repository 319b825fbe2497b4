"""The record of conflict decisions: what was held against what, who decided, and why."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from memoryos_pipeline.domain.undoing import Standing

INSERT = text("""
    insert into memoryos.verdict (tenant_id, verdict_id, scope_id, decision, new_knowledge_id, old_knowledge_id,
                                  new_content, old_content, evidence, decided_by)
    select :tenant_id, :verdict_id, :scope_id, :decision, :new_id, :old_id, :new_content,
           (select content from memoryos.knowledge where tenant_id = :tenant_id and knowledge_id = :old_id),
           :evidence, :decided_by
    on conflict do nothing
""").bindparams(bindparam("evidence", type_=JSONB))


FIND = text("""
    select v.verdict_id, v.scope_id, v.decision, v.new_knowledge_id, v.old_knowledge_id, v.new_content, v.old_content,
           v.evidence, v.decided_by, v.undone_at
      from memoryos.verdict v where v.tenant_id = :tenant_id and v.verdict_id = :verdict_id
""")
MARK_UNDONE = text("""
    update memoryos.verdict set undone_at = memoryos.now()
     where tenant_id = :tenant_id and verdict_id = :verdict_id and undone_at is null
""")
LOAD_STANDINGS = text("""
    select knowledge_id, lineage_id, version, slot, valid_from, valid_to, status, superseded_by, close_reason,
           importance, strength_days, last_reinforced_at, pinned_at
      from memoryos.knowledge
     where tenant_id = :tenant_id and knowledge_id = any(cast(:ids as uuid[]))
     order by knowledge_id for no key update
""")
WRITE_STANDING = text("""
    update memoryos.knowledge
       set lineage_id = :lineage_id, version = :version, slot = :slot, valid_from = :valid_from, valid_to = :valid_to,
           status = :status, superseded_by = :superseded_by, close_reason = :close_reason, importance = :importance,
           strength_days = :strength_days, last_reinforced_at = :last_reinforced_at, pinned_at = :pinned_at,
           forget_at = :forget_at, forgotten_at = null, purge_at = null,
           retired_at = case when :status = 'active' then null else coalesce(retired_at, memoryos.now()) end
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id
""")
DROP_SOURCES = text("""
    delete from memoryos.knowledge_source s using memoryos.page p
     where s.tenant_id = :tenant_id and s.knowledge_id = :knowledge_id and s.seq = any(cast(:seqs as bigint[]))
       and p.tenant_id = :tenant_id and p.page_id = cast(:page_id as uuid) and s.conversation_id = p.conversation_id
""")


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One decision to keep; the old row's content is copied from it."""

    verdict_id: UUID
    decision: str
    new_id: UUID | None
    old_id: UUID | None
    new_content: str
    evidence: dict[str, Any]


def record_verdicts(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, rows: Sequence[VerdictRow], decided_by: str
) -> None:
    """Keep decisions; one that is kept already stays."""
    values = [
        {
            "tenant_id": tenant_id,
            "scope_id": scope_id,
            "decided_by": decided_by,
            "verdict_id": row.verdict_id,
            "decision": row.decision,
            "new_id": row.new_id,
            "old_id": row.old_id,
            "new_content": row.new_content,
            "evidence": row.evidence,
        }
        for row in rows
    ]
    if values:
        connection.execute(INSERT, values)


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A decision as it was kept; `evidence` holds the reason, the page, nearnesses, and how to undo it."""

    verdict_id: UUID
    scope_id: UUID
    decision: str
    new_id: UUID | None
    old_id: UUID | None
    new_content: str
    old_content: str | None
    evidence: dict[str, Any]
    decided_by: str
    undone_at: datetime | None


def find_verdict(connection: Connection, tenant_id: UUID, verdict_id: UUID) -> StoredVerdict | None:
    """Return a decision; None when there is none of this id."""
    row = connection.execute(FIND, {"tenant_id": tenant_id, "verdict_id": verdict_id}).first()
    return StoredVerdict(*row) if row else None


def mark_undone(connection: Connection, tenant_id: UUID, verdict_id: UUID) -> bool:
    """Note that a decision was taken back; False when it already was."""
    return connection.execute(MARK_UNDONE, {"tenant_id": tenant_id, "verdict_id": verdict_id}).rowcount == 1


def lock_standings(connection: Connection, tenant_id: UUID, ids: Sequence[UUID]) -> dict[UUID, Standing]:
    """Return how rows stand, locked; what is gone is missing."""
    rows = connection.execute(LOAD_STANDINGS, {"tenant_id": tenant_id, "ids": list(ids)})
    return {row.knowledge_id: Standing(*row) for row in rows}


def write_standings(
    connection: Connection, tenant_id: UUID, rows: Sequence[tuple[Standing, datetime | None]]
) -> None:  # fmt: skip
    """Write rows in this order, each with the moment it is forgotten."""
    for row, forget_at in rows:
        connection.execute(WRITE_STANDING, {**asdict(row), "tenant_id": tenant_id, "forget_at": forget_at})


def drop_sources(
    connection: Connection, tenant_id: UUID, *, knowledge_id: UUID, seqs: Sequence[int], page_id: str
) -> None:
    """Take turns of a page's conversation away from the sources of a row."""
    values = {"tenant_id": tenant_id, "knowledge_id": knowledge_id, "seqs": list(seqs), "page_id": page_id}
    connection.execute(DROP_SOURCES, values)
