"""When things end under a policy: worked out anew for a whole scope when it comes under another one.

Strength, heat and every reinforcement stay what they were; only the moments that follow from them change.
"""

from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.forgetting import Hold, ends_at
from memoryos_pipeline.domain.heat import Heat, cools_at, cools_at_tick
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.store.heat import read_ticks
from memoryos_pipeline.store.policies import find_policy_of_scope

FIND_FORECAST = text("""
    select forecast_of from memoryos.scope where tenant_id = :tenant_id and scope_id = :scope_id for no key update
""")
# What the user said under another policy was no tick: counting their turns begins anew.
NOTE_FORECAST = text("""
    update memoryos.scope set forecast_of = :policy_id, turn_ticks = null
     where tenant_id = :tenant_id and scope_id = :scope_id
""")
LOAD_KNOWLEDGE = text("""
    select knowledge_id, strength_days, last_reinforced_at, importance, pinned_at is not null as pinned, w0
      from memoryos.knowledge where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active'
     order by knowledge_id for no key update
""")
SET_ENDS = text("""
    update memoryos.knowledge k set forget_at = given.forget_at
      from unnest(cast(:ids as uuid[]), cast(:ends as timestamptz[])) as given(knowledge_id, forget_at)
     where k.tenant_id = :tenant_id and k.knowledge_id = given.knowledge_id
       and k.forget_at is distinct from given.forget_at
""")
# Conversations before their pages, like everybody who locks both. A page whose cooling was handled
# (no moment at all) stays handled: it is looked at once.
LOCK_CONVERSATIONS = text("""
    select c.conversation_id from memoryos.conversation c
     where c.tenant_id = :tenant_id and c.scope_id = :scope_id
       and exists (select from memoryos.page p
                    where p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id and p.tier = 'warm'
                      and (p.cools_at is not null or p.cools_at_tick is not null))
     order by c.conversation_id for no key update
""")
LOAD_PAGES = text("""
    select page_id, sealed_at, heat, heat_at, cools_at is null as by_tick from memoryos.page
     where tenant_id = :tenant_id and scope_id = :scope_id and tier = 'warm'
       and (cools_at is not null or cools_at_tick is not null)
     order by conversation_id, first_seq for no key update
""")
SET_COOLING = text("""
    update memoryos.page p
       set cools_at = given.cools_at, cools_at_tick = given.cools_at_tick, heat_tick = :ticks, version = p.version + 1
      from unnest(cast(:ids as uuid[]), cast(:moments as timestamptz[]), cast(:ticks_of as bigint[]))
           as given(page_id, cools_at, cools_at_tick)
     where p.tenant_id = :tenant_id and p.page_id = given.page_id
""")


def keep_forecast(connection: Connection, tenant_id: UUID, scope_id: UUID, *, default: Policy) -> bool:
    """Work the moments of a scope out anew if they are another policy's; tell whether they were."""
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    forecast_of = connection.execute(FIND_FORECAST, key).scalar_one_or_none()
    found = find_policy_of_scope(connection, tenant_id, scope_id)
    policy_id = found.policy_id if found else None
    if forecast_of == policy_id:
        return False
    policy = found.policy if found else default
    _forecast_pages(connection, tenant_id, scope_id, policy)
    _forecast_knowledge(connection, tenant_id, scope_id, policy)
    connection.execute(NOTE_FORECAST, {**key, "policy_id": policy_id})
    return True


def _forecast_knowledge(connection: Connection, tenant_id: UUID, scope_id: UUID, policy: Policy) -> None:
    ends = {
        row.knowledge_id: ends_at(
            Hold(
                str(row.knowledge_id), row.strength_days, row.last_reinforced_at, row.importance, row.pinned, row.w0
            ),
            policy,
        )
        for row in connection.execute(LOAD_KNOWLEDGE, {"tenant_id": tenant_id, "scope_id": scope_id})
    }  # fmt: skip
    connection.execute(SET_ENDS, {"tenant_id": tenant_id, "ids": list(ends), "ends": list(ends.values())})


def _forecast_pages(connection: Connection, tenant_id: UUID, scope_id: UUID, policy: Policy) -> None:
    ticks = read_ticks(connection, tenant_id, scope_id)
    connection.execute(LOCK_CONVERSATIONS, {"tenant_id": tenant_id, "scope_id": scope_id})
    rows = connection.execute(LOAD_PAGES, {"tenant_id": tenant_id, "scope_id": scope_id}).all()
    heats = [Heat(row.heat, row.heat_at, ticks) for row in rows]
    by_tick = [cools_at_tick(heat, policy) for heat in heats]
    moments = [
        cools_at(heat, sealed_at=row.sealed_at, policy=policy) if tick is None else None
        for heat, row, tick in zip(heats, rows, by_tick, strict=True)
    ]
    values = {"ids": [row.page_id for row in rows], "moments": moments, "ticks_of": by_tick, "ticks": ticks}
    connection.execute(SET_COOLING, {"tenant_id": tenant_id, **values})
