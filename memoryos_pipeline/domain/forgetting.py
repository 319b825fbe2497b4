"""How knowledge fades: one exponential law, the moment it crosses the threshold, and the brake on sweeps. Pure.

Nothing is recomputed as time passes: a row stores its strength and when it was last reinforced, and both the
weight at any moment and the moment of forgetting follow in closed form.
"""

import hashlib
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memoryos_pipeline.domain.policies import Policy

DAY_SECONDS = 86_400.0
HOUR_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Hold:
    """How firmly a row is held; `key` tells rows apart when chance decides."""

    key: str
    strength_days: float
    last_reinforced_at: datetime
    importance: float
    pinned: bool
    w0: float = 1.0


def weight(now: datetime, last_reinforced_at: datetime, *, strength_days: float, w0: float = 1.0) -> float:
    """Return the forgetting weight in 0..1: w0 * exp(-days since the last reinforcement / strength)."""
    days = max(0.0, (now - last_reinforced_at).total_seconds() / DAY_SECONDS)
    return min(1.0, max(0.0, w0 * math.exp(-days / strength_days)))


def is_held(*, pinned: bool, importance: float, importance_floor: float | None) -> bool:
    """Tell whether decay may not take a row: it is pinned, or important enough."""
    return pinned or (importance_floor is not None and importance >= importance_floor)


def forget_at(
    last_reinforced_at: datetime, *, strength_days: float, forget_below: float, w0: float = 1.0, held: bool = False
) -> datetime | None:  # fmt: skip
    """Return when the weight crosses `forget_below`; None when the row is held, or the calendar ends before."""
    if held:
        return None
    lifetime_days = strength_days * max(0.0, math.log(w0 / forget_below)) if w0 > 0 else 0.0
    return _days_after(last_reinforced_at, lifetime_days)


def stochastic_forget_at(
    last_reinforced_at: datetime, *, strength_days: float, key: str, seed: int, w0: float = 1.0
) -> datetime | None:  # fmt: skip
    """Return when chance takes a row whose survival is w0 * exp(-days / strength).

    One draw, from the seed, the row and its last reinforcement, says how long it lives. Whoever looks on the way sees
    the conditional survival R(t2) / R(t1), so looking more often does not kill more.
    """
    chance = draw(key, last_reinforced_at, seed=seed)
    return _days_after(last_reinforced_at, strength_days * max(0.0, math.log(w0 / chance)))


def draw(key: str, at: datetime, *, seed: int) -> float:
    """Return a number above 0 and at most 1 that always belongs to this key, moment and seed."""
    digest = hashlib.sha256(f"{seed}|{key}|{at.astimezone(UTC).isoformat()}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 1) / 2.0**64


def survival(strength_days: float, *, from_days: float, to_days: float) -> float:
    """Return R(to) / R(from): the chance of what lived until `from_days` to live until `to_days`."""
    return math.exp(-max(0.0, to_days - from_days) / strength_days)


def ends_at(hold: Hold, policy: Policy) -> datetime | None:
    """Return when decay takes a row under a policy, if nobody uses it; None for never."""
    if is_held(pinned=hold.pinned, importance=hold.importance, importance_floor=policy.importance_floor):
        return None
    if policy.forget in {"none", "bounded_bias"}:
        return None
    if policy.forget == "stochastic":
        return stochastic_forget_at(
            hold.last_reinforced_at, strength_days=hold.strength_days, key=hold.key, seed=policy.forget_seed,
            w0=hold.w0,
        )  # fmt: skip
    return forget_at(
        hold.last_reinforced_at, strength_days=hold.strength_days, forget_below=policy.forget_below, w0=hold.w0
    )


def expires_at(recorded_at: datetime, ttl_days: float | None) -> datetime | None:
    """Return when a row ends however much it is used; apart from decay, and only a pin keeps it."""
    return None if ttl_days is None else _days_after(recorded_at, ttl_days)


def lifetime_days(policy: Policy, *, strength_days: float | None = None) -> float | None:
    """Return how long knowledge nobody touches lives by decay (on average, under `stochastic`); None for ever."""
    strength = policy.strength_days if strength_days is None else strength_days
    if policy.forget in {"none", "bounded_bias"}:
        return None
    return strength if policy.forget == "stochastic" else strength * math.log(1.0 / policy.forget_below)


def half_life_days(policy: Policy) -> float | None:
    """Return how long the weight of knowledge nobody touches takes to halve; None when it does not fade."""
    return None if policy.forget == "none" else policy.strength_days * math.log(2.0)


def bounded_bias(weight_now: float, *, low: float, high: float) -> float:
    """Return the factor a ranking is multiplied by: `low` for a weight of 0, `high` for 1, never a filter."""
    return low + (high - low) * min(1.0, max(0.0, weight_now))


def strength_of_rate(rate_per_day: float) -> float:
    """Return the strength in days under which exp(-t/strength) decays at `rate_per_day` (exp(-rate*t))."""
    return 1.0 / rate_per_day


def ebbinghaus_strength(
    recalls: int, *, start_days: float = 1.0, step_days: float = 1.0, cap_days: float = math.inf
) -> float:
    """Return the strength after `recalls` recalls: each adds `step_days`, up to `cap_days`."""
    return min(cap_days, start_days + step_days * recalls)


def reinforced_strength(strength_days: float, *, factor: float, cap_days: float, step_days: float = 0.0) -> float:
    """Return the strength after one reinforcement; one that is above the cap already is left as it is."""
    return max(strength_days, min(strength_days * factor + step_days, cap_days))


def strengthened(strength_days: float, policy: Policy, *, times: int = 1) -> float:
    """Return the strength after some reinforcements under a policy; `exp_rate` only starts the clock again."""
    if policy.forget == "exp_rate":
        return strength_days
    for _ in range(times):
        strength_days = reinforced_strength(
            strength_days,
            factor=policy.reinforce_factor,
            cap_days=policy.strength_cap_days,
            step_days=policy.reinforce_step_days,
        )
    return strength_days


def is_new_hour(last_reinforced_at: datetime, at: datetime) -> bool:
    """Tell whether a touch at `at` falls in a later hour than the last reinforcement, and so counts."""
    return _hour(at) > _hour(last_reinforced_at)


def is_braked(due_rows: int, live_rows: int, *, share: float, min_rows: int) -> bool:
    """Tell whether a sweep would take too much of a scope to be believed.

    Fewer than `min_rows` due rows never brake: in a small scope a share says nothing.
    """
    return due_rows >= min_rows and due_rows > share * live_rows


def _days_after(moment: datetime, days: float) -> datetime | None:
    try:
        return moment + timedelta(days=days)
    except OverflowError:
        return None


def _hour(at: datetime) -> int:
    return int(at.timestamp()) // HOUR_SECONDS
