"""Access events: what was retrieved or put into a context, written after the answer and applied to heat later."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, text

INSERT = text("""
    insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause)
    select :tenant_id, :retrieval_id, owner_kind, owner_id, s.scope_id, cause
      from unnest(cast(:owner_kinds as text[]), cast(:owner_ids as uuid[]), cast(:causes as text[]))
           as accessed(owner_kind, owner_id, cause)
      join memoryos.scope s on s.tenant_id = :tenant_id and s.scope_id = :scope_id
     order by owner_kind, owner_id
    on conflict do nothing
""")


def insert_access_events(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, retrieval_id: UUID,
    owners: Sequence[tuple[str, UUID, str]],
) -> None:  # fmt: skip
    """Write one event an (owner kind, owner id, cause); a repeat of the same retrieval changes nothing."""
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "retrieval_id": retrieval_id,
        "owner_kinds": [kind for kind, _, _ in owners],
        "owner_ids": [owner_id for _, owner_id, _ in owners],
        "causes": [cause for _, _, cause in owners],
    }
    if owners:
        connection.execute(INSERT, values)
