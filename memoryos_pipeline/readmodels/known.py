"""Everything a tenant's memory holds or held to be true, with the turns it stands on: what an evaluation reads."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

KNOWN = text("""
    select k.knowledge_id, k.content, k.actor, k.kind, k.status, k.valid_from, k.valid_to, k.superseded_by,
           array_agg(t.client_turn_id order by s.conversation_id, s.seq) as turn_ids
      from memoryos.knowledge k
      join memoryos.knowledge_source s on s.tenant_id = :tenant_id and s.knowledge_id = k.knowledge_id
      join memoryos.turn t on t.tenant_id = :tenant_id and t.conversation_id = s.conversation_id and t.seq = s.seq
     where k.tenant_id = :tenant_id
     group by k.tenant_id, k.knowledge_id
     order by k.knowledge_id
""")

# An index row exists exactly while its owner may be recalled; what is said last is recalled before it has one.
RECALLABLE = text("""
    select s.user_id, p.owner_kind as kind, count(*) as items
      from memoryos.posting_length p
      join memoryos.scope s on s.tenant_id = :tenant_id and s.scope_id = p.scope_id
     where p.tenant_id = :tenant_id group by s.user_id, p.owner_kind
    union all
    select s.user_id, 'hot', cast(sum(c.next_seq - 1 - greatest(c.sealed_through, c.ahead_through)) as bigint)
      from memoryos.conversation c
      join memoryos.scope s on s.tenant_id = :tenant_id and s.scope_id = c.scope_id
     where c.tenant_id = :tenant_id group by s.user_id
""")


@dataclass(frozen=True, slots=True)
class Known:
    """A row of knowledge as it stands, with the turns it cites (by the ids they were handed in under)."""

    knowledge_id: UUID
    content: str
    actor: str
    kind: str
    status: str
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: UUID | None
    turn_ids: tuple[str, ...]


def load_known(connection: Connection, tenant_id: UUID) -> list[Known]:
    """Return every row of a tenant that cites a turn; times are instants with their offset."""
    rows = connection.execute(KNOWN, {"tenant_id": tenant_id})
    return [Known(**{**row._mapping, "turn_ids": tuple(row.turn_ids)}) for row in rows]


def count_recallable(connection: Connection, tenant_id: UUID) -> dict[tuple[str, str], int]:
    """Return how much may be recalled, by user and kind: turn, page, knowledge, and hot for what has no index yet."""
    rows = connection.execute(RECALLABLE, {"tenant_id": tenant_id})
    return {(row.user_id, row.kind): int(row.items) for row in rows}
