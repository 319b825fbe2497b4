"""What was given up: listing it with its reason, trying it again, or giving it up for good.

The ledger role finds rows across tenants and sees no text; the owner changes them tenant by tenant, with an event.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.store.database import Database, try_again

BATCH_ROWS = 1_000
"""Rows changed in one transaction, so that no replay holds up the relay for long."""

FIND = """
    select w.work_id, w.tenant_id, w.scope_id, w.kind, w.subject_key, w.state, w.attempts, w.max_attempts, w.fence,
           w.finished_at, l.at, l.error_class, l.error, l.replayed_at
      from memoryos.work w
      left join lateral (select at, error_class, error, replayed_at from memoryos.dead_letter d
                          where d.work_id = w.work_id and d.tenant_id = w.tenant_id
                          order by fence desc limit 1) l on true
"""
FIND_DEAD = text(f"""{FIND}
     where w.state = 'dead' and w.work_id > :after
       and w.kind = coalesce(cast(:kind as text), w.kind)
       and w.tenant_id = coalesce(cast(:tenant_id as uuid), w.tenant_id)
     order by w.work_id limit :limit
""")
FIND_ONE = text(f"{FIND} where w.work_id = :work_id")
LETTERS = text("""
    select fence, at, error_class, error, replayed_at from memoryos.dead_letter
     where tenant_id = :tenant_id and work_id = :work_id order by fence
""")
PLACE = text("""
    select work_id, tenant_id, state from memoryos.work
     where work_id = any(cast(:work_ids as bigint[])) order by tenant_id, work_id
""")
# What waits for the row is woken by the row itself once it is done, as if it had never been given up.
REPLAY = text("""
    with revived as (
        update memoryos.work
           set state = 'ready', attempts = 0, run_after = clock_timestamp(), enqueued_at = null, finished_at = null,
               deferred_since = null
         where tenant_id = :tenant_id and work_id = any(cast(:work_ids as bigint[])) and state = 'dead'
        returning tenant_id, work_id, scope_id
    ), marked as (
        update memoryos.dead_letter d set replayed_at = clock_timestamp() from revived r
         where d.tenant_id = r.tenant_id and d.work_id = r.work_id and d.replayed_at is null
    ), told as (
        insert into memoryos.event (tenant_id, kind, scope_id, work_id)
        select tenant_id, 'work_replayed', scope_id, work_id from revived order by work_id
    )
    select work_id from revived order by work_id
""")
# The raised fence shuts out whoever may still be at it, and gives the reason a place of its own beside the first.
DISCARD = text("""
    with cancelled as (
        update memoryos.work
           set state = 'cancelled', fence = fence + 1, finished_at = clock_timestamp(), enqueued_at = null
         where tenant_id = :tenant_id and work_id = any(cast(:work_ids as bigint[])) and state = 'dead'
        returning tenant_id, work_id, scope_id, fence
    ), reasons as (
        insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)
        select tenant_id, work_id, fence, 'discarded', :reason from cancelled order by work_id
    ), told as (
        insert into memoryos.event (tenant_id, kind, scope_id, work_id)
        select tenant_id, 'work_discarded', scope_id, work_id from cancelled order by work_id
    )
    select work_id from cancelled order by work_id
""")


@dataclass(frozen=True, slots=True)
class DeadWork:
    """A work row with the last reason it was given up for; the reason is None when it has none."""

    work_id: int
    tenant_id: UUID
    scope_id: UUID
    kind: str
    subject_key: str
    state: str
    attempts: int
    max_attempts: int
    fence: int
    finished_at: datetime | None
    at: datetime | None
    error_class: str | None
    error: str | None
    replayed_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One time a row was given up, and why."""

    fence: int
    at: datetime
    error_class: str
    error: str
    replayed_at: datetime | None


@dataclass(slots=True)
class Outcome:
    """What became of rows that were asked for: `changed` now, or already in the state given."""

    changed: list[int] = field(default_factory=list)
    already: dict[int, str] = field(default_factory=dict)


def list_dead(
    ledger: Database, *, kind: str | None = None, tenant_id: UUID | None = None, limit: int = 100, after: int = 0
) -> list[DeadWork]:
    """Return dead rows by id, of one kind and one tenant or of all; `after` is the last id seen before."""
    values = {"kind": kind, "tenant_id": tenant_id, "limit": limit, "after": after}
    with ledger.across_tenants() as connection:
        return [DeadWork(*row) for row in connection.execute(FIND_DEAD, values)]


def find_work(ledger: Database, work_id: int) -> DeadWork:
    """Return a work row in any state with its last dead letter. Raises NotFoundError."""
    with ledger.across_tenants() as connection:
        row = connection.execute(FIND_ONE, {"work_id": work_id}).first()
    if row is None:
        raise NotFoundError(f"there is no work {work_id}")
    return DeadWork(*row)


def list_letters(ledger: Database, work: DeadWork) -> list[DeadLetter]:
    """Return every time a row was given up, the first first."""
    with ledger.across_tenants() as connection:
        values = {"tenant_id": work.tenant_id, "work_id": work.work_id}
        return [DeadLetter(*row) for row in connection.execute(LETTERS, values)]


def iterate_dead(ledger: Database, *, kind: str | None = None, tenant_id: UUID | None = None) -> Iterator[list[int]]:
    """Yield the ids of all dead rows, up to 1,000 at a time; what dies meanwhile behind them is left out."""
    after = 0
    while found := list_dead(ledger, kind=kind, tenant_id=tenant_id, limit=BATCH_ROWS, after=after):
        after = found[-1].work_id
        yield [row.work_id for row in found]


def replay(owner: Database, ledger: Database, work_ids: Iterable[int]) -> Outcome:
    """Let dead rows be tried again from the first attempt on. Raises NotFoundError before anything is changed."""
    return _change(owner, ledger, work_ids, reason=None)


def discard(owner: Database, ledger: Database, work_ids: Iterable[int], *, reason: str) -> Outcome:
    """Cancel dead rows for good, keeping the reason. Raises NotFoundError before anything is changed."""
    return _change(owner, ledger, work_ids, reason=reason)


def _change(owner: Database, ledger: Database, work_ids: Iterable[int], *, reason: str | None) -> Outcome:
    asked = sorted(set(work_ids))
    outcome = Outcome()
    for tenant_id, rows in groupby(_placed(ledger, asked), key=lambda row: row[0]):
        states = {work_id: state for _, work_id, state in rows}
        ids = list(states)
        for start in range(0, len(ids), BATCH_ROWS):
            batch = ids[start : start + BATCH_ROWS]
            outcome.changed += try_again(partial(_change_batch, owner, tenant_id, batch, reason))
        outcome.already |= states
    for work_id in outcome.changed:
        del outcome.already[work_id]
    return outcome


def _placed(ledger: Database, asked: Sequence[int]) -> list[tuple[UUID, int, str]]:
    with ledger.across_tenants() as connection:
        rows = list(connection.execute(PLACE, {"work_ids": list(asked)}).all())
    missing = set(asked) - {row.work_id for row in rows}
    if missing:
        raise NotFoundError(f"there is no work {', '.join(map(str, sorted(missing)))}")
    return [(row.tenant_id, row.work_id, row.state) for row in rows]


def _change_batch(owner: Database, tenant_id: UUID, work_ids: Sequence[int], reason: str | None) -> list[int]:
    values = {"tenant_id": tenant_id, "work_ids": list(work_ids)}
    with owner.transaction(tenant_id) as connection:
        if reason is None:
            return list(connection.execute(REPLAY, values).scalars())
        return list(connection.execute(DISCARD, {**values, "reason": reason[:2000]}).scalars())
