"""What the ledger role keeps about the whole system: pauses, alarms, counters, and how work ended of late."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.alarms import Alarm
from memoryos_pipeline.domain.work import Tallied

PAUSE = text("""
    insert into memoryos.paused_kind (kind, paused_by, reason) values (:kind, :paused_by, :reason)
    on conflict do nothing returning kind
""")
RESUME = text("delete from memoryos.paused_kind where kind = :kind returning kind")
FORGIVE = text("delete from memoryos.tally where kind = :kind")
PAUSED = text("select kind, paused_at, paused_by, reason from memoryos.paused_kind order by kind")

RAISE = text("""
    insert into memoryos.alarm (name, subject, sentence)
    select * from unnest(cast(:names as text[]), cast(:subjects as text[]), cast(:sentences as text[]))
    on conflict (name, subject) do update set sentence = excluded.sentence, seen_at = clock_timestamp()
    returning name, subject, since = seen_at as is_new
""")
CLEAR = text("""
    delete from memoryos.alarm a
     where a.name = any(cast(:watched as text[]))
       and not exists (select from unnest(cast(:names as text[]), cast(:subjects as text[])) as still(name, subject)
                        where still.name = a.name and still.subject = a.subject)
""")
ALARMS = text("select name, subject, since, seen_at, sentence from memoryos.alarm order by name, subject")

COUNT = text("""
    insert into memoryos.counter (name, total) values (:name, :amount)
    on conflict (name) do update set total = counter.total + excluded.total
""")
COUNTERS = text("select name, total from memoryos.counter order by name")

TALLY = text("""
    insert into memoryos.tally (tenant_id, kind, minute, outcome, count)
    select t.tenant_id, kind, date_trunc('minute', clock_timestamp()), outcome, count
      from unnest(cast(:tenants as uuid[]), cast(:kinds as text[]), cast(:outcomes as text[]),
                  cast(:counts as bigint[])) as given(tenant_id, kind, outcome, count)
      join memoryos.tenant t on t.tenant_id = given.tenant_id
     order by t.tenant_id, kind, outcome
    on conflict (tenant_id, kind, minute, outcome) do update set count = tally.count + excluded.count
""")
# The running minute and the one before it: a failure counts for one to two minutes.
LATELY = text("""
    select kind, tenant_id, outcome, cast(sum(count) as bigint) from memoryos.tally
     where minute >= date_trunc('minute', clock_timestamp()) - interval '1 minute'
     group by kind, tenant_id, outcome
""")
DROP_OLD_TALLIES = text("delete from memoryos.tally where minute < clock_timestamp() - interval '1 hour'")


@dataclass(frozen=True, slots=True)
class Paused:
    """A kind whose work is neither published nor claimed, since when, by whom (`operator` or `alarm`), and why."""

    kind: str
    paused_at: datetime
    paused_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm as it stands: since when, and when it was last seen to hold."""

    name: str
    subject: str
    since: datetime
    seen_at: datetime
    sentence: str


def pause_kind(connection: Connection, kind: str, *, paused_by: str, reason: str) -> bool:
    """Pause a kind; False when it is paused already."""
    values = {"kind": kind, "paused_by": paused_by, "reason": reason[:500]}
    return connection.execute(PAUSE, values).first() is not None


def resume_kind(connection: Connection, kind: str) -> bool:
    """Let a kind go on, its late failures forgiven; False when it was not paused."""
    connection.execute(FORGIVE, {"kind": kind})
    return connection.execute(RESUME, {"kind": kind}).first() is not None


def list_paused(connection: Connection) -> list[Paused]:
    """Return what is paused, by kind."""
    return [Paused(*row) for row in connection.execute(PAUSED)]


def show_alarms(connection: Connection, alarms: Sequence[Alarm], *, watched: Iterable[str]) -> list[Alarm]:
    """Make the alarms of these names be exactly these; return those that are new."""
    values = {
        "watched": list(watched),
        "names": [alarm.name for alarm in alarms],
        "subjects": [alarm.subject for alarm in alarms],
        "sentences": [alarm.sentence for alarm in alarms],
    }
    connection.execute(CLEAR, values)
    rows = connection.execute(RAISE, values).all() if alarms else []
    fresh = {(row.name, row.subject) for row in rows if row.is_new}
    return [alarm for alarm in alarms if (alarm.name, alarm.subject) in fresh]


def list_alarms(connection: Connection) -> list[Raised]:
    """Return what is wrong right now."""
    return [Raised(*row) for row in connection.execute(ALARMS)]


def count(connection: Connection, name: str, amount: int) -> None:
    """Add to a counter."""
    if amount:
        connection.execute(COUNT, {"name": name, "amount": amount})


def read_counters(connection: Connection) -> dict[str, int]:
    """Return all counters by name."""
    return {row.name: row.total for row in connection.execute(COUNTERS)}


def add_tallies(connection: Connection, counts: Mapping[tuple[UUID, str, str], int]) -> None:
    """Note how often work ended how in this minute; keys are tenant, kind and outcome."""
    if counts:
        keys = list(counts)
        values = {
            "tenants": [tenant_id for tenant_id, _, _ in keys],
            "kinds": [kind for _, kind, _ in keys],
            "outcomes": [outcome for _, _, outcome in keys],
            "counts": [counts[key] for key in keys],
        }
        connection.execute(TALLY, values)


def tallied_lately(connection: Connection) -> list[Tallied]:
    """Return how work ended within the last one to two minutes."""
    return [Tallied(*row) for row in connection.execute(LATELY)]


def drop_old_tallies(connection: Connection) -> None:
    """Forget how work ended an hour ago."""
    connection.execute(DROP_OLD_TALLIES)
