"""Reading the graph: what an entity is related to, some steps away, now or as of a moment."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

# A walk from the entities of a name; every relation is walked once, in either direction. What was forgotten relates
# nothing.
WALK = text("""
    with recursive valid as (
        select r.relation_id, r.source_id, r.name, r.target_id, r.knowledge_id, r.valid_from, r.valid_to
          from memoryos.relation r
          join memoryos.scope s on s.tenant_id = :tenant_id and s.scope_id = r.scope_id
          join memoryos.knowledge k on k.tenant_id = :tenant_id and k.knowledge_id = r.knowledge_id
                                   and k.status <> 'forgotten'
         where r.tenant_id = :tenant_id and s.user_id = :user_id
           and (cast(:agent_id as text) is null or s.agent_id = :agent_id)
           and r.valid_from <= coalesce(cast(:as_of as timestamptz), memoryos.now())
           and (r.valid_to is null or r.valid_to > coalesce(cast(:as_of as timestamptz), memoryos.now()))),
    walk as (
        select e.entity_id, 0 as steps from memoryos.entity e
         where e.tenant_id = :tenant_id and (cast(:name as text) is null or e.name_norm = :name)
           and exists (select from valid v where e.entity_id in (v.source_id, v.target_id))
        union
        select case when v.source_id = w.entity_id then v.target_id else v.source_id end, w.steps + 1
          from walk w join valid v on w.entity_id in (v.source_id, v.target_id)
         where w.steps < :hops)
    select v.relation_id, source.name as source, source.type as source_type, v.name as relation,
           target.name as target, target.type as target_type, v.valid_from, v.valid_to, v.knowledge_id,
           min(w.steps) as steps
      from valid v
      join walk w on w.entity_id in (v.source_id, v.target_id) and w.steps < :hops
      join memoryos.entity source on source.tenant_id = :tenant_id and source.entity_id = v.source_id
      join memoryos.entity target on target.tenant_id = :tenant_id and target.entity_id = v.target_id
     group by v.relation_id, source.name, source.type, v.name, target.name, target.type, v.valid_from, v.valid_to,
              v.knowledge_id
     order by steps, v.valid_from desc, v.relation_id limit :limit
""")


@dataclass(frozen=True, slots=True)
class Walk:
    """Where to begin (every entity of a name, or all), how many steps to go, and as of when (None is now)."""

    user_id: str
    agent_id: str | None = None
    name: str | None = None
    hops: int = 1
    as_of: datetime | None = None


def walk_relations(connection: Connection, tenant_id: UUID, walk: Walk, *, limit: int) -> list[dict[str, Any]]:
    """Return the relations on the way, the nearest first; `name` must be folded as names are compared."""
    values = {
        "tenant_id": tenant_id, "user_id": walk.user_id, "agent_id": walk.agent_id, "name": walk.name,
        "hops": walk.hops, "as_of": walk.as_of, "limit": limit,
    }  # fmt: skip
    return [dict(row._mapping) for row in connection.execute(WALK, values)]
