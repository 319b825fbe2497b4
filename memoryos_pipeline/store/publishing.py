"""What the relay asks of the ledger: due rows fairly across tenants, stale stamps, leases that ran out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.store.database import LOST_TO_OTHERS, sqlstate_of

LANE_ROWS = 10
"""How many rows of a kind a tenant has under way whose rows of late mostly failed."""

IN_BROKER = text("""
    select count(*) from memoryos.work
     where state = 'ready' and kind = any(cast(:kinds as text[])) and enqueued_at is not null
       and enqueued_at >= clock_timestamp() - :stale_seconds * interval '1 second'
""")

# Tenants take turns: a skip scan lists those with ready rows of the kind, each offers its oldest, and the
# offers are dealt round by round. What a tenant has in the broker already counts against its share, so that the
# queue never holds one tenant's backlog in front of everybody else. Against a narrow lane counts what runs, too: rows
# that hang, or end their process, then hold a few workers and never all of them.
PICK = text("""
    with recursive waiting(tenant_id) as (
        (select tenant_id from memoryos.work where kind = :kind and state = 'ready' order by tenant_id limit 1)
        union all
        select (select w.tenant_id from memoryos.work w
                 where w.kind = :kind and w.state = 'ready' and w.tenant_id > waiting.tenant_id
                 order by w.tenant_id limit 1)
          from waiting where waiting.tenant_id is not null
    ), rung as (
        select tenant_id, count(*) as held from memoryos.work
         where kind = :kind and state = 'ready' and enqueued_at is not null
           and enqueued_at >= clock_timestamp() - :stale_seconds * interval '1 second'
         group by tenant_id
    ), running as (
        select tenant_id, count(*) as held from memoryos.work
         where kind = :kind and state = 'leased' and lease_until >= clock_timestamp()
           and tenant_id = any(cast(:narrow as uuid[]))
         group by tenant_id
    ), offered as (
        select offer.work_id,
               row_number() over (partition by waiting.tenant_id order by offer.run_after, offer.work_id) as round
          from waiting left join rung on rung.tenant_id = waiting.tenant_id
          left join running on running.tenant_id = waiting.tenant_id cross join lateral (
              select work_id, run_after from memoryos.work
               where kind = :kind and state = 'ready' and tenant_id = waiting.tenant_id
                 and run_after <= clock_timestamp() and last_error_class is distinct from 'lease_expired'
                 and (enqueued_at is null or enqueued_at < clock_timestamp() - :stale_seconds * interval '1 second')
               order by run_after, work_id
               limit greatest(least(:room, case when waiting.tenant_id = any(cast(:narrow as uuid[]))
                                                then least(:share, :lane) - coalesce(running.held, 0) else :share end
                                           - coalesce(rung.held, 0)), 0)) offer
    ), dealt as (
        select work_id from offered order by round, work_id limit :room
    ), locked as (
        select work_id, enqueued_at is not null as again from memoryos.work
         where work_id in (select work_id from dealt) and state = 'ready' for update skip locked
    ), counted as (
        insert into memoryos.counter (name, total)
        select 'republished', count(*) from locked where again having count(*) > 0
        on conflict (name) do update set total = counter.total + excluded.total
    )
    update memoryos.work w set enqueued_at = clock_timestamp() from locked
     where w.work_id = locked.work_id returning w.tenant_id, w.work_id
""")

# What went down with its worker may be what ended it. It has a share of its own, which rows that are being tried
# count against: in a kind no more processes can be ended at a time, however many such rows there are.
SUSPECTED = text("""
    select distinct kind from memoryos.work where state = 'ready' and last_error_class = 'lease_expired'
       and run_after <= clock_timestamp()
""")
PICK_SUSPECTS = text("""
    with tried as (
        select count(*) as rows from memoryos.work
         where kind = :kind and state in ('ready', 'leased') and last_error_class = 'lease_expired'
           and (state = 'leased' or enqueued_at >= clock_timestamp() - :stale_seconds * interval '1 second')
    ), offered as (
        select work_id, row_number() over (partition by tenant_id order by run_after, work_id) as round
          from memoryos.work
         where kind = :kind and state = 'ready' and last_error_class = 'lease_expired'
           and run_after <= clock_timestamp()
           and (enqueued_at is null or enqueued_at < clock_timestamp() - :stale_seconds * interval '1 second')
    ), dealt as (
        select work_id from offered order by round, work_id limit (select greatest(:share - rows, 0) from tried)
    ), locked as (
        select work_id, enqueued_at is not null as again from memoryos.work
         where work_id in (select work_id from dealt) and state = 'ready' for update skip locked
    ), counted as (
        insert into memoryos.counter (name, total)
        select 'republished', count(*) from locked where again having count(*) > 0
        on conflict (name) do update set total = counter.total + excluded.total
    )
    update memoryos.work w set enqueued_at = clock_timestamp() from locked
     where w.work_id = locked.work_id returning w.work_id
""")

# Rows that are waited for are taken in the order in which everybody owes them: tenant, kind, subject.
_TAKE_STAMPS = """
    with rung as (
        select work_id from memoryos.work where state = 'ready' and {which}
         order by tenant_id, kind, subject_key for update
    )
    update memoryos.work w set enqueued_at = null from rung where w.work_id = rung.work_id
"""
UNSTAMP = text(_TAKE_STAMPS.format(which="work_id = any(cast(:work_ids as bigint[]))"))
FORGET_BROKER = text(_TAKE_STAMPS.format(which="enqueued_at is not null"))

GIVE_WAY = text("set local lock_timeout = '300ms'")
WAIT_AS_USUAL = text("set local lock_timeout to default")
# What was claimed ahead and never begun is given back as it was: it did nothing, and ended nobody.
REAP = text("""
    with expired as (
        select work_id, begun from memoryos.work where state = 'leased' and lease_until < clock_timestamp()
           and (:buries or attempts < max_attempts or not begun)
         order by lease_until limit 1000 for update skip locked
    ), spent as (
        select work_id from memoryos.work where state = 'ready' and attempts >= max_attempts and :buries
         order by work_id limit 100 for update skip locked
    ), reaped as (
        update memoryos.work w
           set state = case when attempts >= max_attempts and counts then 'dead' else 'ready' end,
               finished_at = case when attempts >= max_attempts and counts then clock_timestamp() end,
               attempts = case when counts then attempts else attempts - 1 end,
               last_error_class = case when counts then 'lease_expired' else last_error_class end,
               enqueued_at = null, lease_until = null, owner = null
          from (select work_id, begun as counts from expired union all select work_id, true from spent) found
         where w.work_id = found.work_id
        returning w.tenant_id, w.work_id, w.fence, w.state, w.kind, found.counts
    ), tallied as (
        insert into memoryos.tally (tenant_id, kind, minute, outcome, count)
        select tenant_id, kind, date_trunc('minute', clock_timestamp()), 'lease_expired', count(*) from reaped
         where counts group by tenant_id, kind order by tenant_id, kind
        on conflict (tenant_id, kind, minute, outcome) do update set count = tally.count + excluded.count
    ), buried as (
        insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)
        select tenant_id, work_id, fence, 'lease_expired', 'the worker vanished on every attempt'
          from reaped where state = 'dead'
        on conflict do nothing
    )
    select count(*) from reaped
""")

# A step a kind, however many rows wait.
UNKNOWN_KINDS = text("""
    with recursive waiting(kind) as (
        (select kind from memoryos.work where state = 'ready' order by kind limit 1)
        union all
        select (select w.kind from memoryos.work w where w.state = 'ready' and w.kind > waiting.kind
                 order by w.kind limit 1)
          from waiting where waiting.kind is not null
    )
    select kind from waiting where kind is not null and not kind = any(cast(:known as text[]))
""")
LEASED_KINDS = text("""
    select distinct kind from memoryos.work where state = 'leased' and lease_until >= clock_timestamp()
""")
# The newest slot of each, not the day's: this is asked every second.
LAST_SLOT = text("""
    select cast(extract(epoch from clock_timestamp() - max(latest.started_at)) as float8)
      from unnest(cast(:names as text[])) as asked(name)
     cross join lateral (select started_at from memoryos.periodic_run run
                          where run.name = asked.name order by run.slot desc limit 1) latest
""")


def count_in_broker(connection: Connection, kinds: Sequence[str], *, stale_seconds: float) -> int:
    """Return how many rows of these kinds have a fresh doorbell in the broker."""
    values = {"kinds": list(kinds), "stale_seconds": stale_seconds}
    count: int = connection.execute(IN_BROKER, values).scalar_one()
    return count


def pick_due(
    connection: Connection, kind: str, *, room: int, share: int, stale_seconds: float, narrow: Collection[UUID] = ()
) -> dict[UUID, list[int]]:
    """Stamp up to `room` due rows of a kind, tenants taking turns; return their ids by tenant, in order.

    No tenant gets more than `share` rows into the broker at a time; those of `narrow` have LANE_ROWS there and in
    work together. Rows rung for in vain are counted.
    """
    values = {
        "kind": kind, "room": room, "share": share, "stale_seconds": stale_seconds,
        "narrow": list(narrow), "lane": LANE_ROWS,
    }  # fmt: skip
    picked: dict[UUID, list[int]] = defaultdict(list)
    for tenant_id, work_id in sorted(connection.execute(PICK, values).all()):
        picked[tenant_id].append(work_id)
    return picked


def suspected_kinds(connection: Connection) -> list[str]:
    """Return kinds of which something that went down with its worker waits to be tried again."""
    return list(connection.execute(SUSPECTED).scalars())


def pick_suspects(connection: Connection, kind: str, *, share: int, stale_seconds: float) -> list[int]:
    """Stamp rows that went down with their worker, tenants taking turns; each is to be rung for alone.

    No more than `share` of them are in the broker or being tried at a time.
    """
    values = {"kind": kind, "share": share, "stale_seconds": stale_seconds}
    return sorted(connection.execute(PICK_SUSPECTS, values).scalars())


def unstamp(connection: Connection, work_ids: Iterable[int]) -> None:
    """Take the stamp back from rows whose message could not be published."""
    connection.execute(UNSTAMP, {"work_ids": list(work_ids)})


def forget_broker(connection: Connection) -> int:
    """Take every stamp back: the broker was emptied, so everything ready is published again."""
    return connection.execute(FORGET_BROKER).rowcount


def reap_expired(connection: Connection) -> int:
    """Make rows whose lease ran out ready again, or bury them when no attempt is left.

    A dead letter wakes other work. When a stage holds that row, and may be waiting for ours, the burials give way to
    it and are left for the next time.
    """
    try:
        with connection.begin_nested():
            connection.execute(GIVE_WAY)
            count: int = connection.execute(REAP, {"buries": True}).scalar_one()
            connection.execute(WAIT_AS_USUAL)
    except DBAPIError as error:
        if sqlstate_of(error) not in LOST_TO_OTHERS:
            raise
        count = connection.execute(REAP, {"buries": False}).scalar_one()
    return count


def unknown_kinds(connection: Connection, known: Sequence[str]) -> list[str]:
    """Return kinds that newer code has written and this code cannot do; they are left alone."""
    return list(connection.execute(UNKNOWN_KINDS, {"known": list(known)}).scalars())


def leased_kinds(connection: Connection) -> set[str]:
    """Return kinds of which something is being done right now."""
    return set(connection.execute(LEASED_KINDS).scalars())


def seconds_since_slot(connection: Connection, names: Sequence[str]) -> float | None:
    """Return for how long none of these sweeps has begun; None when none ever has."""
    seconds: float | None = connection.execute(LAST_SLOT, {"names": list(names)}).scalar()
    return seconds
