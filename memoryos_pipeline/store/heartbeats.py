"""Progress of long-lived processes, written by them and read by whoever asks whether work moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from memoryos_pipeline.store.database import Database

BEAT = text("""
    insert into memoryos.heartbeat (process, role, completed, queues)
    values (:process, :role, :completed, cast(:queues as text[]))
    on conflict (process) do update
       set beat_at = clock_timestamp(), completed = excluded.completed, queues = excluded.queues
""")
DROP_SILENT = text("delete from memoryos.heartbeat where beat_at < clock_timestamp() - interval '1 hour'")
SERVED = text("""
    select distinct queue from memoryos.heartbeat cross join unnest(queues) as queue
     where role = 'worker' and beat_at >= clock_timestamp() - :silent_seconds * interval '1 second'
""")
PROCESSES = text("""
    select process, role, beat_at, completed, queues,
           cast(extract(epoch from clock_timestamp() - beat_at) as float8) as silent_seconds
      from memoryos.heartbeat order by role, process
""")


@dataclass(frozen=True, slots=True)
class Process:
    """A long-lived process as it last showed itself; a worker names the queues it serves."""

    process: str
    role: str
    beat_at: datetime
    completed: int
    queues: tuple[str, ...]
    silent_seconds: float


def beat(ledger: Database, process: str, role: str, *, completed: int, queues: Sequence[str] = ()) -> None:
    """Say that a process is alive, what it serves and how much it has completed since its start."""
    with ledger.across_tenants() as connection:
        values = {"process": process, "role": role, "completed": completed, "queues": list(queues)}
        connection.execute(BEAT, values)


def queues_served(connection: Connection, *, silent_seconds: float) -> set[str]:
    """Return the queues that some worker has named within the last seconds."""
    return set(connection.execute(SERVED, {"silent_seconds": silent_seconds}).scalars())


def list_processes(connection: Connection) -> list[Process]:
    """Return every process that has shown itself within the last hour or two."""
    rows = connection.execute(PROCESSES)
    return [Process(row[0], row[1], row[2], row[3], tuple(row[4]), row[5]) for row in rows]


def drop_silent(ledger: Database) -> None:
    """Forget processes that have been silent for an hour."""
    with ledger.across_tenants() as connection:
        connection.execute(DROP_SILENT)
