"""Limits of providers, shared by all processes: calls are counted before they are made, in one short transaction."""

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.errors import ProviderPausedError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.provider_limits import Full, ProviderLimit, count_call
from memoryos_pipeline.store.database import Database

EVERY = "*"
"""What is bound for all providers together."""

IS_LIMITED = text("select exists (select from memoryos.provider_limit where provider in (:provider, '*'))")
_LIMITS = """
    select provider, calls_per_minute, calls_per_hour, calls_at_once, minute_at, minute_calls, hour_at, hour_calls
      from memoryos.provider_limit
"""
LOCK_LIMITS = text(_LIMITS + " where provider in (:provider, '*') order by provider for update")
# Asked once the limits are held: who waited for them sees what was counted meanwhile.
NOW = text("select clock_timestamp()")
DROP_EXPIRED = text("""
    delete from memoryos.provider_call where provider = :provider and expires_at < clock_timestamp()
""")
UNDER_WAY = text("select count(*) from memoryos.provider_call where provider = :provider")
COUNT = text("""
    update memoryos.provider_limit
       set minute_at = :minute_at, minute_calls = :minute_calls, hour_at = :hour_at, hour_calls = :hour_calls
     where provider = :provider
""")
BEGIN = text("""
    insert into memoryos.provider_call (provider, call_id, expires_at)
    values (:provider, :call_id, clock_timestamp() + :seconds * interval '1 second')
""")
END = text("delete from memoryos.provider_call where provider in (:provider, '*') and call_id = :call_id")
SET = text("""
    insert into memoryos.provider_limit (provider, calls_per_minute, calls_per_hour, calls_at_once)
    values (:provider, :calls_per_minute, :calls_per_hour, :calls_at_once)
    on conflict (provider) do update
       set calls_per_minute = excluded.calls_per_minute, calls_per_hour = excluded.calls_per_hour,
           calls_at_once = excluded.calls_at_once
""")
TAKE_AWAY = text("delete from memoryos.provider_limit where provider = :provider")
LIMITS = text(_LIMITS + " order by provider")


def begin_call(connection: Connection, provider: str, *, seconds: float) -> UUID | None:
    """Count a call of at most `seconds` against the limits of its provider and of all; None when there are none.

    Raises ProviderPausedError, a deferral, when there is no room. Whoever begins a call ends it with `end_call`.
    """
    if not connection.execute(IS_LIMITED, {"provider": provider}).scalar():
        return None
    call_id = mint_id()
    for row in connection.execute(LOCK_LIMITS, {"provider": provider}).all():
        counted = _count(connection, ProviderLimit(*row))
        if isinstance(counted, Full):
            raise ProviderPausedError(provider, counted.reason, retry_after_seconds=counted.wait_seconds)
        connection.execute(COUNT, asdict(counted))
        connection.execute(BEGIN, {"provider": counted.provider, "call_id": call_id, "seconds": seconds})
    return call_id


def _count(connection: Connection, limit: ProviderLimit) -> ProviderLimit | Full:
    key = {"provider": limit.provider}
    connection.execute(DROP_EXPIRED, key)
    under_way: int = connection.execute(UNDER_WAY, key).scalar_one()
    return count_call(limit, connection.execute(NOW).scalar_one(), under_way=under_way)


def end_call(connection: Connection, provider: str, call_id: UUID) -> None:
    """Make room for the next call."""
    connection.execute(END, {"provider": provider, "call_id": call_id})


def set_limit(
    owner: Database, provider: str, *, calls_per_minute: int | None, calls_per_hour: int | None,
    calls_at_once: int | None,
) -> None:  # fmt: skip
    """Bound what is asked of a provider (`*`: of all together), or of one without any bound take the limit away."""
    values = {
        "provider": provider,
        "calls_per_minute": calls_per_minute,
        "calls_per_hour": calls_per_hour,
        "calls_at_once": calls_at_once,
    }
    is_bound = any(each is not None for each in (calls_per_minute, calls_per_hour, calls_at_once))
    with owner.across_tenants() as connection:
        connection.execute(SET if is_bound else TAKE_AWAY, values)


def list_limits(connection: Connection) -> Sequence[ProviderLimit]:
    """Return every limit there is, by provider."""
    return [ProviderLimit(*row) for row in connection.execute(LIMITS)]
