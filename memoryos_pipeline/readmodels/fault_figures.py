"""What a fault run asks the database: what is owed, what a dead process held, what was done twice, and how often."""

from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

ONCE = ("page_sealed", "page_summarized", "page_assigned", "page_distilled", "page_archived", "knowledge_added",
        "knowledge_forgotten")  # fmt: skip
"""Events that happen to a subject at most once."""

OWED = text("select kind, count(*) from memoryos.work where state in ('ready', 'leased') group by kind order by kind")
HELD = text("""
    select work_id, fence, kind from memoryos.work
     where state = 'leased' and owner like '%:' || cast(:pid as text) order by work_id
""")
# Whoever finished a row before it died left it done, or ready without a reason; then nobody has to take it over.
ORPHANED = text("""
    select w.work_id, w.fence, w.state = 'ready' and w.enqueued_at is not null
      from unnest(cast(:work_ids as bigint[]), cast(:fences as bigint[])) as held(work_id, fence)
      join memoryos.work w on w.work_id = held.work_id and w.fence = held.fence
     where w.state = 'leased' or (w.state = 'ready' and (w.last_error_class = 'lease_expired' or not w.begun))
""")
RUNG = text("select work_id from memoryos.work where state = 'ready' and enqueued_at is not null")
UNHEARD = text("""
    select work_id from memoryos.work
     where work_id = any(cast(:work_ids as bigint[])) and state = 'ready'
       and (enqueued_at is null or enqueued_at <= cast(:since as timestamptz))
""")
NOW = text("select clock_timestamp()")
DOUBLED = text("""
    select kind, subject_id from memoryos.event
     where tenant_id = :tenant_id and kind = any(cast(:once as text[]))
     group by kind, subject_id having count(*) > 1 order by kind, subject_id
""")
NAMES = text("""
    select s.user_id, s.agent_id, c.external_id, t.client_turn_id
      from memoryos.turn t
      join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
      join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
     where t.tenant_id = :tenant_id
""")
EXECUTIONS = text("""
    select coalesce(sum(executions), 0), count(*) from memoryos.work
     where tenant_id = :tenant_id and kind = any(cast(:kinds as text[])) and state = 'done'
""")
DONE = text("select count(*) from memoryos.work where state = 'done'")
DEAD = text("select count(*) from memoryos.work where state = 'dead'")
TROUBLED = text("select count(*) from memoryos.work where attempts > 1 or last_error_class is not null")
LEASED_BY = text("""
    select owner from memoryos.work where state = 'leased' and kind = :kind order by lease_until desc limit 1
""")


class Held(NamedTuple):
    """A row as a process held it."""

    work_id: int
    fence: int


def count_owed(connection: Connection) -> dict[str, int]:
    """Return how many rows of each kind are ready or leased, of all tenants."""
    return {str(kind): int(count) for kind, count in connection.execute(OWED)}


def held_by(connection: Connection, pid: int) -> list[tuple[Held, str]]:
    """Return the rows a process has leased, and their kinds."""
    return [(Held(work_id, fence), kind) for work_id, fence, kind in connection.execute(HELD, {"pid": pid})]


def still_orphaned(connection: Connection, held: Iterable[Held]) -> dict[Held, bool]:
    """Return those rows of a dead process that nobody has taken over yet, and whether each is on offer again."""
    rows = list(held)
    values = {"work_ids": [row.work_id for row in rows], "fences": [row.fence for row in rows]}
    return {Held(work_id, fence): is_rung for work_id, fence, is_rung in connection.execute(ORPHANED, values)}


def rung_rows(connection: Connection) -> tuple[set[int], str]:
    """Return the rows whose doorbell lies in the broker, and the moment this was seen."""
    at = connection.execute(NOW).scalar_one()
    return set(connection.execute(RUNG).scalars()), at.isoformat()


def still_unheard(connection: Connection, work_ids: Collection[int], *, since: str) -> set[int]:
    """Return those rows that were neither claimed nor rung for again since a moment."""
    return set(connection.execute(UNHEARD, {"work_ids": list(work_ids), "since": since}).scalars())


def find_doubled(connection: Connection, tenant_id: UUID) -> list[tuple[str, UUID]]:
    """Return what happened twice and may happen once: kind of event and subject."""
    rows = connection.execute(DOUBLED, {"tenant_id": tenant_id, "once": list(ONCE)})
    return [(kind, subject) for kind, subject in rows]


def read_names(connection: Connection, tenant_id: UUID) -> set[tuple[str, str, str, str]]:
    """Return the names of all turns: user, agent, conversation, client_turn_id."""
    return {(row[0], row[1], row[2], row[3]) for row in connection.execute(NAMES, {"tenant_id": tenant_id})}


def count_executions(connection: Connection, tenant_id: UUID, kinds: Collection[str]) -> tuple[int, int]:
    """Return how often done rows of these kinds were begun, and how many there are."""
    row = connection.execute(EXECUTIONS, {"tenant_id": tenant_id, "kinds": list(kinds)}).one()
    return int(row[0]), int(row[1])


def count_done(connection: Connection) -> int:
    """Return how many rows are done."""
    count: int = connection.execute(DONE).scalar_one()
    return count


def count_dead(connection: Connection) -> int:
    """Return how many rows were given up."""
    count: int = connection.execute(DEAD).scalar_one()
    return count


def count_troubled(connection: Connection) -> int:
    """Return how many rows needed more than one attempt, or have an error as their last word."""
    count: int = connection.execute(TROUBLED).scalar_one()
    return count


def owner_of_kind(connection: Connection, kind: str) -> int | None:
    """Return the process that has a row of a kind leased, the latest; None when nobody has."""
    owner: str | None = connection.execute(LEASED_BY, {"kind": kind}).scalar()
    return int(owner.rpartition(":")[2]) if owner else None
