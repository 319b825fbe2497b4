"""What is let go by age: accesses that had their effect, and old events. In batches, as the ledger role."""

from sqlalchemy import TextClause, text

from memoryos_pipeline.store.database import Database

BATCH_ROWS = 5_000
EVENT_DAYS_AT_LEAST = 7.0
"""A reader of the change feed that comes at least once a week misses nothing."""

DROP_ACCESSES = text("""
    delete from memoryos.access_event a using (
        select tenant_id, retrieval_id, owner_kind, owner_id, cause from memoryos.access_event
         where applied_at is not null and applied_at < memoryos.now() - :days * interval '1 day'
         order by applied_at limit :batch) old
     where a.tenant_id = old.tenant_id and a.retrieval_id = old.retrieval_id and a.owner_kind = old.owner_kind
       and a.owner_id = old.owner_id and a.cause = old.cause
""")
# That a memory was purged of something is more than history: without it the invariants would miss what is gone.
DROP_EVENTS = text("""
    delete from memoryos.event e using (
        select tenant_id, event_id from memoryos.event
         where recorded_at < clock_timestamp() - :days * interval '1 day' and kind <> 'knowledge_purged'
         order by recorded_at limit :batch) old
     where e.tenant_id = old.tenant_id and e.event_id = old.event_id
""")


def prune(ledger: Database, *, access_days: float, event_days: float) -> dict[str, int]:
    """Let go what is older than these days, and return rows by table; 0 days keeps everything.

    An access that has not had its effect yet is kept however old it is; an event is kept for a week at least.
    """
    removed = {"access_event": 0, "event": 0}
    if access_days:
        removed["access_event"] = _drop(ledger, DROP_ACCESSES, access_days)
    if event_days:
        removed["event"] = _drop(ledger, DROP_EVENTS, max(event_days, EVENT_DAYS_AT_LEAST))
    return removed


def _drop(ledger: Database, statement: TextClause, days: float) -> int:
    """Delete batch after batch, a transaction each, so that nobody waits for long."""
    total = 0
    while True:
        with ledger.across_tenants() as connection:
            rows = connection.execute(statement, {"days": days, "batch": BATCH_ROWS}).rowcount
        total += rows
        if rows < BATCH_ROWS:
            return total
