"""Made-up work in bulk: what a measurement of the ledger fills a database with, and counts afterwards."""

from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.store.database import Database

FILL_SCOPE = text("""
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    values (:tenant_id, :scope_id, 'somebody', 'bench') on conflict do nothing
""")
FILL = text("""
    insert into memoryos.work (tenant_id, kind, subject_key, scope_id, state, finished_at)
    select :tenant_id, :kind, :prefix || ':' || :state || n, :scope_id, :state,
           case when :state = 'done' then clock_timestamp() end
      from generate_series(1, :rows) n
""")
IDS = text("""
    select work_id from memoryos.work
     where tenant_id = :tenant_id and kind = :kind and split_part(subject_key, ':', 1) = :prefix and state = 'ready'
     order by work_id
""")
DONE = text("""
    select count(*) from memoryos.work
     where tenant_id = :tenant_id and kind = :kind and split_part(subject_key, ':', 1) = :prefix and state = 'done'
       and executions = 1
""")
TOLD = text("select count(distinct work_id) from memoryos.event where tenant_id = :tenant_id and kind = :event")


def event_of(prefix: str) -> str:
    """Return the kind of event that tells of a made-up row done."""
    return f"bench_{prefix}_done"


def fill_ledger(database: Database, tenant_id: UUID, kind: str, *, prefix: str, ready: int, done: int = 0) -> None:
    """Owe work of a made-up kind to one memory of a tenant: rows that are due, and rows that were done long ago."""
    scope = scope_id(tenant_id, "somebody", "bench")
    values = {"tenant_id": tenant_id, "scope_id": scope, "kind": kind, "prefix": prefix}
    with database.transaction(tenant_id) as connection:
        connection.execute(FILL_SCOPE, values)
        for state, rows in (("ready", ready), ("done", done)):
            connection.execute(FILL, {**values, "state": state, "rows": rows})


def ledger_ids(database: Database, tenant_id: UUID, kind: str, *, prefix: str) -> list[int]:
    """Return the ids of what is due, in order."""
    values = {"tenant_id": tenant_id, "kind": kind, "prefix": prefix}
    with database.transaction(tenant_id) as connection:
        return list(connection.execute(IDS, values).scalars())


def ledger_outcome(database: Database, tenant_id: UUID, kind: str, *, prefix: str) -> tuple[int, int]:
    """Return how many rows were done by one execution each, and of how many an event tells."""
    values = {"tenant_id": tenant_id, "kind": kind, "prefix": prefix, "event": event_of(prefix)}
    with database.transaction(tenant_id) as connection:
        done, told = (int(connection.execute(query, values).scalar_one()) for query in (DONE, TOLD))
        return done, told
