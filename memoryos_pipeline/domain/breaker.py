"""When calls to a provider stop and begin again: closed, open, half open. Pure: a state and `now` in, a state out."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

WINDOW = timedelta(seconds=30)
CALLS_AT_LEAST = 20
FAILED_SHARE = 0.5
COOL_SECONDS = 30.0
COOL_CAP_SECONDS = 600.0

Outcome = Literal["answered", "failed", "refused"]
"""How a call ended: with an answer of whatever worth; without one; or refused as such (credential, spend limit)."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """The state before one provider. `retry_at` is when an open one lets a probe through, or a probe is given up."""

    window_at: datetime
    phase: Literal["closed", "open", "half_open"] = "closed"
    calls: int = 0
    failures: int = 0
    trips: int = 0
    retry_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a call may begin now; when not, for how long it must not."""

    breaker: Breaker
    wait_seconds: float = 0.0

    @property
    def is_admitted(self) -> bool:
        """Whether the call may begin."""
        return self.wait_seconds <= 0.0


def admit(breaker: Breaker, now: datetime, *, probe_seconds: float) -> Admission:
    """Decide on a call. An open breaker that has cooled lets one call through, and no other for `probe_seconds`."""
    if breaker.phase == "closed":
        return Admission(breaker)
    if breaker.retry_at is not None and now < breaker.retry_at:
        return Admission(breaker, (breaker.retry_at - now).total_seconds())
    return Admission(replace(breaker, phase="half_open", retry_at=now + timedelta(seconds=probe_seconds)))


def note_outcome(
    breaker: Breaker, outcome: Outcome, now: datetime, *, reason: str = "", wait_seconds: float = 0.0
) -> Breaker:
    """Return the state after a call ended. A refusal opens at once, for `wait_seconds` when that is longer."""
    if outcome == "refused":
        return _opened(breaker, now, reason, wait_seconds)
    if breaker.phase == "half_open":
        return Breaker(window_at=now) if outcome == "answered" else _opened(breaker, now, reason, wait_seconds)
    if breaker.phase == "open":
        return breaker  # a call from before it opened says nothing new
    counted = _counted(breaker, outcome, now)
    is_broken = counted.calls >= CALLS_AT_LEAST and counted.failures >= FAILED_SHARE * counted.calls
    return _opened(counted, now, reason, 0.0) if is_broken and outcome == "failed" else counted


def _counted(breaker: Breaker, outcome: Outcome, now: datetime) -> Breaker:
    fresh = breaker if now - breaker.window_at < WINDOW else Breaker(window_at=now)
    return replace(fresh, calls=fresh.calls + 1, failures=fresh.failures + (outcome == "failed"))


def _opened(breaker: Breaker, now: datetime, reason: str, wait_seconds: float) -> Breaker:
    trips = breaker.trips + 1
    cool = min(COOL_CAP_SECONDS, COOL_SECONDS * 2.0 ** min(trips - 1, 10))
    retry_at = now + timedelta(seconds=max(cool, wait_seconds))
    return Breaker(window_at=now, phase="open", trips=trips, retry_at=retry_at, reason=reason)
