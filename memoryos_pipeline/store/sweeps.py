"""What is due by time and belongs to nobody yet: idle conversations, cooling pages, fading knowledge.

Each sweep is an index range scan over what is due, as the ledger role, and owes one work row a scope.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.store.database import Database, sqlstate_of

TAKE_SLOT = text("""
    insert into memoryos.periodic_run (name, slot)
    values (:name, to_timestamp(floor(extract(epoch from clock_timestamp()) / :period) * :period))
    on conflict do nothing returning slot
""")
CLOSE_SLOT = text("update memoryos.periodic_run set owed = :owed where name = :name and slot = :slot")
DROP_OLD_SLOTS = text("delete from memoryos.periodic_run where slot < clock_timestamp() - interval '7 days'")

OWE_DUE = """
    insert into memoryos.work (tenant_id, kind, subject_key, scope_id)
    select tenant_id, '{kind}', subject, scope_id from ({due}) due(tenant_id, scope_id, subject)
    order by tenant_id, subject
    on conflict (tenant_id, kind, subject_key) do update
       set generation = work.generation + 1, state = 'ready', attempts = 0, enqueued_at = null, finished_at = null,
           run_after = clock_timestamp()
     where work.state in ('done', 'cancelled') and work.run_after <= clock_timestamp()
"""
"""Only rows that are over and do not rest are woken: one that is ready, leased or dead stands for what is due."""

FLUSH = text(
    OWE_DUE.format(
        kind="advance",
        due="""
    select c.tenant_id, c.scope_id, c.conversation_id::text from memoryos.conversation c
      join memoryos.scope s on s.tenant_id = c.tenant_id and s.scope_id = c.scope_id
     where c.sealed_through < c.next_seq - 1
       and (c.closed_at is not null
            or (c.last_activity_at <= memoryos.now() - interval '1 minute'
                  * least(:idle_minutes, (select min(idle_flush_minutes) from memoryos.scope))
                and c.last_activity_at <= memoryos.now() - interval '1 minute'
                  * coalesce(s.idle_flush_minutes, :idle_minutes)))
""",
    )
)
TAIL = text(
    OWE_DUE.format(
        kind="embed",
        due="""
    select tenant_id, scope_id, 'tail:' || conversation_id from memoryos.conversation
     where greatest(sealed_through, ahead_through) < next_seq - 1
       and (next_seq - 1 - greatest(sealed_through, ahead_through) >= :tail_turns
            or last_activity_at <= memoryos.now() - :tail_seconds * interval '1 second')
""",
    )
)
HEAT = text(
    OWE_DUE.format(
        kind="heat",
        due="""
    select tenant_id, scope_id, scope_id::text from memoryos.page where cools_at <= memoryos.now()
    union
    select tenant_id, scope_id, scope_id::text from memoryos.access_event where applied_at is null
""",
    )
)
FORGET = text(
    OWE_DUE.format(
        kind="forget",
        due="""
    select k.tenant_id, k.scope_id, k.scope_id::text from memoryos.knowledge k
      join memoryos.tenant t on t.tenant_id = k.tenant_id and not t.on_hold
     where k.status = 'active' and k.forget_at <= memoryos.now() and k.pinned_at is null
    union
    select k.tenant_id, k.scope_id, k.scope_id::text from memoryos.knowledge k
      join memoryos.tenant t on t.tenant_id = k.tenant_id and not t.on_hold
     where k.status = 'active' and k.expires_at <= memoryos.now() and k.pinned_at is null
    union
    select k.tenant_id, k.scope_id, k.scope_id::text from memoryos.knowledge k
      join memoryos.tenant t on t.tenant_id = k.tenant_id and not t.on_hold
     where k.purge_at <= memoryos.now()
""",
    )
)

MAX_ERASURES = 20
"""How many users may be erased under the eyes of one sweep before it leaves the rest to the next."""
SCOPE_IS_GONE = "23503"

TAIL_TURNS, TAIL_SECONDS = 4, 10.0
"""Hot turns are indexed once so many wait, or nobody spoke for so long: a run for each turn would cost messages."""

SWEEPS = {"flush": FLUSH, "tail": TAIL, "heat": HEAT, "forget": FORGET}


def owe_due(ledger: Database, *, name: str | None = None, policy: Policy = DEFAULT) -> int:
    """Owe whatever is due now, for one sweep or for all of them; return how many rows were woken or made."""
    names = [name] if name else list(SWEEPS)
    with ledger.across_tenants() as connection:
        return sum(_sweep(connection, each, policy) for each in names)


def owe_tails(ledger: Database) -> int:
    """Owe every hot tail that is not indexed, however short and however fresh; return how many rows were woken."""
    with ledger.across_tenants() as connection:
        return connection.execute(TAIL, {"tail_turns": 1, "tail_seconds": 0.0}).rowcount


def run_slot(ledger: Database, name: str, *, period_seconds: float, policy: Policy = DEFAULT) -> int | None:
    """Run a sweep once per period, however many schedulers ask; None when the slot was taken already."""
    with ledger.across_tenants() as connection:
        slot: datetime | None = connection.execute(TAKE_SLOT, {"name": name, "period": period_seconds}).scalar()
        if slot is None:
            return None
        owed = _sweep(connection, name, policy)
        connection.execute(CLOSE_SLOT, {"owed": owed, "name": name, "slot": slot})
        return owed


def take_slot(ledger: Database, name: str, *, period_seconds: float) -> datetime | None:
    """Take the slot of this period for something that is no sweep; None when it was taken already."""
    with ledger.across_tenants() as connection:
        slot: datetime | None = connection.execute(TAKE_SLOT, {"name": name, "period": period_seconds}).scalar()
    return slot


def drop_old_slots(ledger: Database) -> None:
    """Forget slots older than a week."""
    with ledger.across_tenants() as connection:
        connection.execute(DROP_OLD_SLOTS)


def _sweep(connection: Connection, name: str, policy: Policy) -> int:
    """Owe what is due. What a user had is due until the erasure commits: then it is looked at again, without them."""
    values: dict[str, Any] = {"idle_minutes": policy.idle_flush_minutes} if name == "flush" else {}
    values |= {"tail_turns": TAIL_TURNS, "tail_seconds": TAIL_SECONDS} if name == "tail" else {}
    for _ in range(MAX_ERASURES):
        try:
            with connection.begin_nested():
                return connection.execute(SWEEPS[name], values).rowcount
        except IntegrityError as error:
            if sqlstate_of(error) != SCOPE_IS_GONE:
                raise
    return 0
