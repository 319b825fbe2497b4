"""How knowledge fades: one exponential law, the moment it crosses the threshold, and the brake on sweeps. Pure.

Nothing is recomputed as time passes: a row stores its strength and when it was last reinforced, and both the
weight at any moment and the moment of forgetting follow in closed form.
"""

import math
from datetime import datetime, timedelta

DAY_SECONDS = 86_400.0
HOUR_SECONDS = 3_600


def weight(now: datetime, last_reinforced_at: datetime, *, strength_days: float, w0: float = 1.0) -> float:
    """Return the forgetting weight in 0..1: w0 * exp(-days since the last reinforcement / strength)."""
    days = max(0.0, (now - last_reinforced_at).total_seconds() / DAY_SECONDS)
    return min(1.0, max(0.0, w0 * math.exp(-days / strength_days)))


def is_held(*, pinned: bool, importance: float, importance_floor: float) -> bool:
    """Tell whether decay may not take a row: it is pinned, or important enough."""
    return pinned or importance >= importance_floor


def forget_at(
    last_reinforced_at: datetime, *, strength_days: float, forget_below: float, w0: float = 1.0, held: bool = False
) -> datetime | None:  # fmt: skip
    """Return when the weight crosses `forget_below`; None when the row is held, or the calendar ends before."""
    if held:
        return None
    lifetime_days = strength_days * max(0.0, math.log(w0 / forget_below)) if w0 > 0 else 0.0
    try:
        return last_reinforced_at + timedelta(days=lifetime_days)
    except OverflowError:
        return None


def strength_of_rate(rate_per_day: float) -> float:
    """Return the strength in days under which exp(-t/strength) decays at `rate_per_day` (exp(-rate*t))."""
    return 1.0 / rate_per_day


def ebbinghaus_strength(
    recalls: int, *, start_days: float = 1.0, step_days: float = 1.0, cap_days: float = math.inf
) -> float:
    """Return the strength after `recalls` recalls: each adds `step_days`, up to `cap_days`."""
    return min(cap_days, start_days + step_days * recalls)


def reinforced_strength(strength_days: float, *, factor: float, cap_days: float) -> float:
    """Return the strength after one reinforcement; one that is above the cap already is left as it is."""
    return max(strength_days, min(strength_days * factor, cap_days))


def is_new_hour(last_reinforced_at: datetime, at: datetime) -> bool:
    """Tell whether a touch at `at` falls in a later hour than the last reinforcement, and so counts."""
    return _hour(at) > _hour(last_reinforced_at)


def is_braked(due_rows: int, live_rows: int, *, share: float, min_rows: int) -> bool:
    """Tell whether a sweep would take too much of a scope to be believed.

    Fewer than `min_rows` due rows never brake: in a small scope a share says nothing.
    """
    return due_rows >= min_rows and due_rows > share * live_rows


def _hour(at: datetime) -> int:
    return int(at.timestamp()) // HOUR_SECONDS
