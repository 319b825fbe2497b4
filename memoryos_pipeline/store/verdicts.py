"""The record of conflict decisions: what was held against what, who decided, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

INSERT = text("""
    insert into memoryos.verdict (tenant_id, verdict_id, scope_id, decision, new_knowledge_id, old_knowledge_id,
                                  new_content, old_content, evidence, decided_by)
    select :tenant_id, :verdict_id, :scope_id, :decision, :new_id, :old_id, :new_content,
           (select content from memoryos.knowledge where tenant_id = :tenant_id and knowledge_id = :old_id),
           :evidence, :decided_by
    on conflict do nothing
""").bindparams(bindparam("evidence", type_=JSONB))


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
