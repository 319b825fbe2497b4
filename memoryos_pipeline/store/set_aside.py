"""Pages that merging was given up for: set aside with a reason, and put back in line when a person asks."""

from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.work import Lease, WorkKind

BURY = text("""
    insert into memoryos.work (tenant_id, kind, subject_key, scope_id, state, attempts, max_attempts, finished_at,
                               last_error_class, last_error, task_id)
    select w.tenant_id, :kind, :page_id, w.scope_id, 'dead', w.attempts, w.max_attempts, clock_timestamp(),
           :error_class, :error, w.task_id
      from memoryos.work w where w.tenant_id = :tenant_id and w.work_id = :work_id
    on conflict (tenant_id, kind, subject_key) do update
       set state = 'dead', fence = work.fence + 1, attempts = excluded.attempts, finished_at = excluded.finished_at,
           last_error_class = excluded.last_error_class, last_error = excluded.last_error, enqueued_at = null,
           lease_until = null, owner = null
    returning work_id, fence
""")
REASON = text("""
    insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)
    values (:tenant_id, :work_id, :fence, :error_class, :error)
""")
PUT_BACK = text("""
    update memoryos.page set extract_ordinal = :ordinal, version = version + 1
     where tenant_id = :tenant_id and page_id = :page_id
""")
PUT_CANDIDATES_BACK = text("""
    update memoryos.candidate set extract_ordinal = :ordinal where tenant_id = :tenant_id and page_id = :page_id
""")


def bury_page(connection: Connection, lease: Lease, page_id: UUID, *, error_class: str, error: str) -> int:
    """Give a page up on behalf of the work that stood at it; return the id of the dead row, which can be replayed."""
    values = {
        "kind": str(WorkKind.MERGE_PAGE),
        "page_id": str(page_id),
        "tenant_id": lease.tenant_id,
        "work_id": lease.work_id,
        "error_class": error_class,
        "error": error[:2000],
    }
    row = connection.execute(BURY, values).one()
    connection.execute(REASON, {**values, "work_id": row.work_id, "fence": row.fence})
    buried: int = row.work_id
    return buried


def put_page_back(connection: Connection, tenant_id: UUID, page_id: UUID, *, ordinal: int) -> None:
    """Give a page and what was found on it another place in the merging line."""
    values = {"tenant_id": tenant_id, "page_id": page_id, "ordinal": ordinal}
    connection.execute(PUT_BACK, values)
    connection.execute(PUT_CANDIDATES_BACK, values)
