"""Progress of long-lived processes, written by them and read by whoever asks whether work moves."""

from sqlalchemy import text

from memoryos_pipeline.store.database import Database

BEAT = text("""
    insert into memoryos.heartbeat (process, role, completed) values (:process, :role, :completed)
    on conflict (process) do update set beat_at = clock_timestamp(), completed = excluded.completed
""")
DROP_SILENT = text("delete from memoryos.heartbeat where beat_at < clock_timestamp() - interval '1 hour'")


def beat(ledger: Database, process: str, role: str, *, completed: int) -> None:
    """Say that a process is alive and how much it has completed since its start."""
    with ledger.across_tenants() as connection:
        connection.execute(BEAT, {"process": process, "role": role, "completed": completed})


def drop_silent(ledger: Database) -> None:
    """Forget processes that have been silent for an hour."""
    with ledger.across_tenants() as connection:
        connection.execute(DROP_SILENT)
