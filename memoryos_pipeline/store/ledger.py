"""The work ledger: claim with lease and fence, heartbeat, complete, fail. All times are the database's.

`owe` and `complete` run inside the tenant's own transaction, next to the effect they belong to.
Claiming, beating, failing and publishing run as the ledger role, which sees work rows and no text.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import OperationalError

from memoryos_pipeline.domain.errors import FencedError
from memoryos_pipeline.domain.work import Lease, Owed, RetryDecision
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.store.database import Database, try_again

_OWE = """
    insert into memoryos.work (tenant_id, kind, subject_key, scope_id, max_attempts, run_after)
    select :tenant_id, kind, subject_key, scope_id, :max_attempts, clock_timestamp() + delay * interval '1 second'
    from unnest(cast(:kinds as text[]), cast(:subjects as text[]), cast(:scopes as uuid[]), cast(:delays as float8[]))
         as owed(kind, subject_key, scope_id, delay)
    order by kind, subject_key
    on conflict (tenant_id, kind, subject_key) do"""
# Whoever asks again does not cut short the pause after a failure: a provider named it, or tries would be burnt at once.
_AGAIN = """ update
       set generation = work.generation + 1,
           state = case when work.state in ('done', 'cancelled') then 'ready' else work.state end,
           attempts = case when work.state in ('done', 'cancelled') then 0 else work.attempts end,
           enqueued_at = case when work.state in ('done', 'cancelled') then null else work.enqueued_at end,
           finished_at = case when work.state in ('done', 'cancelled') then null else work.finished_at end,
           deferred_since = case when work.state in ('done', 'cancelled') then null else work.deferred_since end,
           run_after = case when work.state in ('done', 'cancelled') then excluded.run_after
                            when work.state = 'ready' and work.last_error_class is not null then work.run_after
                            else least(work.run_after, excluded.run_after) end
"""
OWE = text(_OWE + _AGAIN)
OWE_ONCE = text(_OWE + " nothing")

_CLAIM = """
    update memoryos.work w
       set state = 'leased', fence = w.fence + 1, attempts = w.attempts + 1 - due.unspent,
           executions = w.executions + 1, owner = :owner, task_id = :task_id, claimed_at = clock_timestamp(),
           begun = :begins, lease_until = clock_timestamp() + :lease_seconds * interval '1 second'
      from (select work_id, cast(state = 'leased' and not begun as integer) as unspent,
                   (state = 'leased' and begun) or last_error_class is not distinct from 'lease_expired' as vanished
              from memoryos.work
             where work_id = any(cast(:work_ids as bigint[]))
               and attempts < max_attempts
               and kind = any(coalesce(cast(:kinds as text[]), array[kind]))
               and not exists (select from memoryos.paused_kind p where p.kind = work.kind)
               and ((state = 'ready' and run_after <= clock_timestamp())
                    or (state = 'leased' and lease_until < clock_timestamp()))
             order by work_id for update {locked}) due
     where w.work_id = due.work_id
    returning w.work_id, w.tenant_id, w.scope_id, w.kind, w.subject_key, w.generation, w.fence, w.attempts,
              w.max_attempts, due.vanished,
              coalesce(cast(extract(epoch from clock_timestamp() - w.deferred_since) as float8), 0), w.begun
"""
CLAIM = text(_CLAIM.format(locked="skip locked"))
CLAIM_WAITING = text(_CLAIM.format(locked=""))

# What a claim left although it is due was locked, mostly by a transaction that owes this very work.
STILL_DUE = text("""
    select work_id from memoryos.work
     where work_id = any(cast(:work_ids as bigint[])) and state = 'ready' and run_after <= clock_timestamp()
       and attempts < max_attempts and kind = any(coalesce(cast(:kinds as text[]), array[kind]))
       and not exists (select from memoryos.paused_kind p where p.kind = work.kind)
     order by work_id
""")
LOCK_PATIENCE = text("select set_config('lock_timeout', '2s', true)")
LOCK_NOT_AVAILABLE = "55P03"

# Nobody waits for a disk over this: what a crash of the database takes of it, it takes of the stages as well. Rows are
# waited for in the order in which everybody owes them.
BEGIN = text("""
    with soon as (select set_config('synchronous_commit', 'off', true)),
    mine as (
        select w.work_id
          from unnest(cast(:work_ids as bigint[]), cast(:fences as bigint[])) as held(work_id, fence)
          join memoryos.work w on w.work_id = held.work_id and w.fence = held.fence and w.state = 'leased'
         order by w.tenant_id, w.kind, w.subject_key for update of w
    )
    update memoryos.work w set begun = true from mine, soon where w.work_id = mine.work_id
""")

# A row that is locked is about to be completed or is being owed again. It is passed over until the next beat: to wait
# for it with other rows in hand would hold up, or deadlock with, the very stage that it is beaten for.
BEAT = text("""
    update memoryos.work w
       set lease_until = clock_timestamp() + :lease_seconds * interval '1 second'
      from (select at.work_id
              from unnest(cast(:work_ids as bigint[]), cast(:fences as bigint[])) as held(work_id, fence)
              join memoryos.work at on at.work_id = held.work_id and at.fence = held.fence and at.state = 'leased'
             order by at.work_id for update of at skip locked) free
     where w.work_id = free.work_id
""")

STILL_HELD = text("""
    select w.work_id
      from unnest(cast(:work_ids as bigint[]), cast(:fences as bigint[])) as held(work_id, fence)
      join memoryos.work w on w.work_id = held.work_id and w.fence = held.fence and w.state = 'leased'
""")

# Rows are locked in the order of their ids: two workers that complete many at once never wait for each other in a ring.
COMPLETE = text("""
    with held as (
        select w.work_id, given.generation
          from unnest(cast(:work_ids as bigint[]), cast(:fences as bigint[]), cast(:generations as bigint[]))
               as given(work_id, fence, generation)
          join memoryos.work w on w.work_id = given.work_id and w.fence = given.fence and w.state = 'leased'
         order by w.work_id for update of w
    )
    update memoryos.work w
       set state = case when w.generation = held.generation then 'done' else 'ready' end,
           finished_at = case when w.generation = held.generation then clock_timestamp() end,
           attempts = case when w.generation = held.generation then w.attempts else 0 end,
           run_after = case when w.generation = held.generation then w.run_after else clock_timestamp() end,
           enqueued_at = null, lease_until = null, owner = null, last_error_class = null, last_error = null,
           deferred_since = null
      from held
     where w.work_id = held.work_id
""")

HOLD = text("""
    update memoryos.work set attempts = least(attempts, 1), deferred_since = null, last_error_class = null
     where work_id = :work_id and fence = :fence and state = 'leased'
    returning work_id
""")

# Fewer attempts than were claimed with mean that `hold` has counted progress since: then it is too early to give up.
FAIL = text("""
    update memoryos.work
       set state = case when :dead and attempts >= :attempts then 'dead' else 'ready' end,
           attempts = attempts - case when :burns_attempt then 0 else 1 end,
           deferrals = deferrals + case when :burns_attempt then 0 else 1 end,
           run_after = clock_timestamp() + :delay_seconds * interval '1 second',
           finished_at = case when :dead and attempts >= :attempts then clock_timestamp() end,
           deferred_since = case when not :burns_attempt then coalesce(deferred_since, clock_timestamp()) end,
           enqueued_at = null, lease_until = null, owner = null, last_error_class = :error_class, last_error = :error
     where work_id = :work_id and fence = :fence and state = 'leased'
    returning state
""")

# Work that got past what stopped it begins anew, as if it had just been owed.
RENEW = text("""
    update memoryos.work
       set state = 'ready', attempts = 0, run_after = clock_timestamp(), deferred_since = null,
           enqueued_at = null, lease_until = null, owner = null, last_error_class = null, last_error = null
     where work_id = :work_id and fence = :fence and state = 'leased'
    returning work_id
""")

REST = text("""
    update memoryos.work set run_after = clock_timestamp() + :seconds * interval '1 second'
     where work_id = :work_id and fence = :fence and state = 'done'
""")

DEAD_LETTER = text("""
    insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)
    values (:tenant_id, :work_id, :fence, :error_class, :error) on conflict do nothing
""")

RELEASE = text("""
    update memoryos.work w
       set state = 'ready', attempts = w.attempts - 1, enqueued_at = null, lease_until = null, owner = null
      from unnest(cast(:work_ids as bigint[]), cast(:fences as bigint[])) as held(work_id, fence)
     where w.work_id = held.work_id and w.fence = held.fence and w.state = 'leased'
""")


def owe(connection: Connection, tenant_id: UUID, owed: Sequence[Owed], *, max_attempts: int = 5) -> None:
    """Ask for work. A row that exists gets its generation raised and runs (again): no wake-up is lost."""
    if owed:
        connection.execute(OWE, _owed_columns(tenant_id, owed, max_attempts))


def owe_once(connection: Connection, tenant_id: UUID, owed: Sequence[Owed], *, max_attempts: int = 5) -> None:
    """Ask for work that is done once per subject: a row that exists, done or not, is left alone."""
    if owed:
        connection.execute(OWE_ONCE, _owed_columns(tenant_id, owed, max_attempts))


def complete(connection: Connection, lease: Lease) -> None:
    """Mark a work row done in the transaction of its effect. Raises FencedError when the lease was lost.

    A row whose generation was raised meanwhile goes back to ready instead.
    """
    complete_all(connection, [lease])


def complete_all(connection: Connection, leases: Sequence[Lease]) -> None:
    """Mark work rows of one tenant done in the transaction of all their effects. Raises FencedError when one was lost.

    Nothing may then be committed: the effects of the others are in the same transaction.
    """
    values = {**_held(leases), "generations": [lease.generation for lease in leases]}
    if connection.execute(COMPLETE, values).rowcount != len(leases):
        raise FencedError
    for lease in leases:
        reach("before_commit", lease.kind, work_id=lease.work_id, fence=lease.fence)


def renew(connection: Connection, lease: Lease) -> None:
    """Let work begin anew at once, in the transaction that took away what stopped it. Raises FencedError."""
    if connection.execute(RENEW, {"work_id": lease.work_id, "fence": lease.fence}).first() is None:
        raise FencedError


def hold(connection: Connection, lease: Lease) -> None:
    """Check, in the transaction of an intermediate effect, that the lease still stands. Raises FencedError.

    What was tried in vain before counts no more: long work is given up for standing still, not for being long.
    """
    if connection.execute(HOLD, {"work_id": lease.work_id, "fence": lease.fence}).first() is None:
        raise FencedError
    reach("mid_batch", lease.kind, work_id=lease.work_id, fence=lease.fence)


def rest(connection: Connection, lease: Lease, *, seconds: float) -> None:
    """Keep sweeps from waking a completed row for a while; whoever owes it wakes it at once."""
    connection.execute(REST, {"work_id": lease.work_id, "fence": lease.fence, "seconds": seconds})


class Ledger:
    """What workers and the relay do to work rows, over the ledger role's own pool."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self,
        work_ids: Iterable[int],
        *,
        owner: str,
        lease_seconds: float,
        kinds: Iterable[str] | None = None,
        task_id: str | None = None,
        ahead: bool = False,
    ) -> list[Lease]:
        """Claim those rows that are due, counting the attempt before it runs. Others are left out, silently.

        So are rows of a paused kind, and of a kind not among `kinds`: newer code has written them. `task_id` names
        the message. A row that is locked at this moment is waited for: passing it over would lose its doorbell until
        the relay finds the stamp stale.

        Of several rows claimed `ahead` each counts as tried only from `begin` on: a process that ends takes along
        what it had begun, and nothing else.
        """
        asked = list(work_ids)
        values = {
            "work_ids": asked,
            "owner": owner,
            "lease_seconds": lease_seconds,
            "kinds": None if kinds is None else list(kinds),
            "task_id": task_id,
            "begins": not ahead or len(asked) == 1,
        }
        with self._database.across_tenants() as connection:
            rows = list(connection.execute(CLAIM, values).all())
            locked = connection.execute(STILL_DUE, values).scalars().all() if len(rows) < len(asked) else ()
        for work_id in locked:
            rows += self._claim_waiting({**values, "work_ids": [work_id]})
        return sorted((Lease(*row) for row in rows), key=lambda lease: lease.work_id)

    def _claim_waiting(self, values: dict[str, Any]) -> Sequence[Row[Any]]:
        """Claim one row, waiting for its lock in a transaction that holds no other, so that nobody waits for us."""
        try:
            with self._database.across_tenants() as connection:
                connection.execute(LOCK_PATIENCE)
                return connection.execute(CLAIM_WAITING, values).all()
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                raise
            return ()

    def begin(self, leases: Sequence[Lease]) -> None:
        """Note that the stages of rows that were claimed ahead begin now: from here on they may be what ends us.

        Raises FencedError when a lease was lost.
        """
        ahead = [lease for lease in leases if not lease.begun]
        if not ahead:
            return
        with self._database.across_tenants() as connection:
            if connection.execute(BEGIN, _held(ahead)).rowcount != len(ahead):
                raise FencedError

    def beat(self, leases: Sequence[Lease], *, lease_seconds: float) -> set[int]:
        """Extend leases; return the ids of those still held. The others must be given up."""
        with self._database.across_tenants() as connection:
            connection.execute(BEAT, {**_held(leases), "lease_seconds": lease_seconds})
            return set(connection.execute(STILL_HELD, _held(leases)).scalars())

    def fail(self, lease: Lease, decision: RetryDecision, *, error_class: str, error: str) -> bool:
        """Give a row back after a failure, or bury it with its reason. False when the lease was lost."""
        values = {
            "work_id": lease.work_id,
            "fence": lease.fence,
            "attempts": lease.attempts,
            "dead": decision.dead,
            "burns_attempt": decision.burns_attempt,
            "delay_seconds": decision.delay_seconds,
            "error_class": error_class,
            "error": error[:2000],
        }
        return try_again(lambda: self._give_back({**values, "tenant_id": lease.tenant_id})) is not None

    def _give_back(self, values: dict[str, Any]) -> str | None:
        """Write a failure down. A dead letter wakes other work, whose row a stage may hold that waits for ours."""
        with self._database.across_tenants() as connection:
            state: str | None = connection.execute(FAIL, values).scalar()
            if state == "dead":
                connection.execute(DEAD_LETTER, values)
        return state

    def release(self, leases: Sequence[Lease]) -> None:
        """Hand unfinished rows back at once, without burning an attempt (graceful stop)."""
        for lease in leases:  # a transaction each: to wait for one row with others in hand could deadlock
            with self._database.across_tenants() as connection:
                connection.execute(RELEASE, _held([lease]))


def _owed_columns(tenant_id: UUID, owed: Sequence[Owed], max_attempts: int) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "max_attempts": max_attempts,
        "kinds": [str(item.kind) for item in owed],
        "subjects": [item.subject_key for item in owed],
        "scopes": [item.scope_id for item in owed],
        "delays": [item.delay_seconds for item in owed],
    }


def _held(leases: Sequence[Lease]) -> dict[str, list[int]]:
    return {"work_ids": [lease.work_id for lease in leases], "fences": [lease.fence for lease in leases]}
