"""How many calls a provider is asked for: in a minute, in an hour, at once. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
AT_ONCE_SECONDS = 2.0
"""When a call under way may have ended, nobody knows; so long is waited before it is asked again."""


@dataclass(frozen=True, slots=True)
class ProviderLimit:
    """What may be asked of a provider, and what was asked in the minute and the hour that run; None has no bound."""

    provider: str
    calls_per_minute: int | None
    calls_per_hour: int | None
    calls_at_once: int | None
    minute_at: datetime
    minute_calls: int
    hour_at: datetime
    hour_calls: int


@dataclass(frozen=True, slots=True)
class Full:
    """Why a call must not begin now, and for how long."""

    reason: str
    wait_seconds: float


def count_call(limit: ProviderLimit, now: datetime, *, under_way: int) -> ProviderLimit | Full:
    """Return the limit with one more call counted, or why there is no room for it."""
    minute = limit if now - limit.minute_at < MINUTE else replace(limit, minute_at=now, minute_calls=0)
    fresh = minute if now - limit.hour_at < HOUR else replace(minute, hour_at=now, hour_calls=0)
    if fresh.calls_per_minute is not None and fresh.minute_calls >= fresh.calls_per_minute:
        return Full(f"{fresh.calls_per_minute} calls a minute are made", _left(fresh.minute_at + MINUTE, now))
    if fresh.calls_per_hour is not None and fresh.hour_calls >= fresh.calls_per_hour:
        return Full(f"{fresh.calls_per_hour} calls an hour are made", _left(fresh.hour_at + HOUR, now))
    if fresh.calls_at_once is not None and under_way >= fresh.calls_at_once:
        return Full(f"{fresh.calls_at_once} calls at once are under way", AT_ONCE_SECONDS)
    return replace(fresh, minute_calls=fresh.minute_calls + 1, hour_calls=fresh.hour_calls + 1)


def _left(end: datetime, now: datetime) -> float:
    return max(0.0, (end - now).total_seconds())
