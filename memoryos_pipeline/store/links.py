"""Links between knowledge rows, few and reasoned."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.links import Link

PUT = text("""
    insert into memoryos.knowledge_link (tenant_id, scope_id, source_id, target_id, type, weight, reason, created_by)
    select :tenant_id, :scope_id, source_id, target_id, type, weight, reason, :created_by
      from unnest(cast(:source_ids as uuid[]), cast(:target_ids as uuid[]), cast(:types as text[]),
                  cast(:weights as float8[]), cast(:reasons as text[]))
           as given(source_id, target_id, type, weight, reason)
     order by source_id, target_id, type
    on conflict (tenant_id, source_id, target_id, type) do update
       set weight = excluded.weight, reason = excluded.reason
""")
READ_OF = text("""
    with ends as (
        select source_id, target_id, weight from memoryos.knowledge_link
         where tenant_id = :tenant_id and source_id = any(cast(:ids as uuid[]))
        union all
        select target_id, source_id, weight from memoryos.knowledge_link
         where tenant_id = :tenant_id and target_id = any(cast(:ids as uuid[])))
    select source_id, target_id, max(weight) as weight from ends group by source_id, target_id
     order by source_id, target_id
""")
# A link without direction is two rows; when one end drops it, the other end loses it too.
DROP_WEAKEST = text("""
    with ranked as (
        select source_id, target_id,
               row_number() over (partition by source_id order by weight desc, target_id) as place
          from memoryos.knowledge_link
         where tenant_id = :tenant_id and type = :type and source_id = any(cast(:ids as uuid[]))),
    dropped as (select source_id, target_id from ranked where place > :cap)
    delete from memoryos.knowledge_link l using dropped d
     where l.tenant_id = :tenant_id and l.type = :type
       and ((l.source_id = d.source_id and l.target_id = d.target_id)
            or (l.source_id = d.target_id and l.target_id = d.source_id))
""")


def put_links(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, links: Sequence[Link], created_by: str
) -> None:
    """Store links; one that exists gets the new weight and reason."""
    if not links:
        return
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "created_by": created_by,
        "source_ids": [link.source_id for link in links],
        "target_ids": [link.target_id for link in links],
        "types": [link.type for link in links],
        "weights": [min(1.0, max(0.0, link.weight)) for link in links],
        "reasons": [link.reason for link in links],
    }
    connection.execute(PUT, values)


def drop_weakest_links(
    connection: Connection, tenant_id: UUID, *, ids: Sequence[UUID], link_type: str, cap: int
) -> None:  # fmt: skip
    """Leave each of these rows at most `cap` links of a type, the weakest dropped at both ends."""
    values = {"tenant_id": tenant_id, "ids": list(ids), "type": link_type, "cap": cap}
    connection.execute(DROP_WEAKEST, values)


def read_links_of(connection: Connection, tenant_id: UUID, ids: Sequence[UUID]) -> list[tuple[UUID, UUID, float]]:
    """Return (row, row it is linked to, weight of the strongest link) of these rows, in either direction."""
    rows = connection.execute(READ_OF, {"tenant_id": tenant_id, "ids": list(ids)})
    return [(row.source_id, row.target_id, row.weight) for row in rows]
