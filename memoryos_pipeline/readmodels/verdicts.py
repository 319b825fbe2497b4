"""Reading the ledger of decisions: what was held against what, who decided, why, and whether it was taken back."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

OF_TENANT = text("""
    select v.verdict_id, v.decision, v.old_content, v.new_content, v.old_knowledge_id, v.new_knowledge_id, v.decided_by,
           v.decided_at, v.undone_at, s.user_id, s.agent_id, v.evidence
      from memoryos.verdict v
      join memoryos.scope s on s.tenant_id = :tenant_id and s.scope_id = v.scope_id
     where v.tenant_id = :tenant_id
""")
LIST = text(
    OF_TENANT.text
    + """
       and (cast(:user_id as text) is null or s.user_id = :user_id)
       and (cast(:agent_id as text) is null or s.agent_id = :agent_id)
       and (cast(:decision as text) is null or v.decision = :decision)
     order by v.decided_at desc, v.verdict_id limit :limit
"""
)
ONE = text(OF_TENANT.text + " and v.verdict_id = :verdict_id")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which decisions to list; None is any."""

    user_id: str | None = None
    agent_id: str | None = None
    decision: str | None = None


def list_verdicts(connection: Connection, tenant_id: UUID, chosen: Filter, *, limit: int) -> list[dict[str, Any]]:
    """Return decisions, the latest first, at most `limit`."""
    values = {
        "tenant_id": tenant_id, "user_id": chosen.user_id, "agent_id": chosen.agent_id, "decision": chosen.decision,
        "limit": limit,
    }  # fmt: skip
    return [_shown(row) for row in connection.execute(LIST, values)]


def read_verdict(connection: Connection, tenant_id: UUID, verdict_id: UUID) -> dict[str, Any] | None:
    """Return one decision; None when there is none of this id."""
    row = connection.execute(ONE, {"tenant_id": tenant_id, "verdict_id": verdict_id}).first()
    return _shown(row) if row else None


def _shown(row: Row[Any]) -> dict[str, Any]:
    found = dict(row._mapping)
    evidence = found.pop("evidence")
    undo = evidence.pop("undo", None) or {}
    return {
        **found,
        "reason": evidence.pop("reason", ""),
        "undoes": evidence.pop("undoes", None),
        "evidence": evidence,
        "can_be_undone": found["undone_at"] is None and bool(undo.get("swaps")),
    }
