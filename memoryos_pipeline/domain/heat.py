"""How warm pages and segments are: two heats that are never mixed, each evaluated in closed form. Pure.

EMA heat of a page is stored as a value and the moment of it; it decays by itself and every access lifts it.
Linear heat of a segment counts visits and new pages; it says when what was said is worth distilling.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from memoryos_pipeline.domain.forgetting import is_new_hour
from memoryos_pipeline.domain.policies import Policy

MU_SECONDS = 1e7
"""The recency constant of the MemoryOS paper (115.7 days)."""
# So that heat computed at the moment of cooling is below the threshold in anybody's arithmetic.
COOLING_MARGIN = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Heat:
    """EMA heat in 0..1, and when it had that value: by time, and by tick."""

    value: float
    at: datetime
    tick: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A point on both clocks of heat: recorded time, and ticks of the scope: its retrievals or its user's turns."""

    at: datetime
    tick: int = 0


def heat_after(heat: Heat, now: datetime, *, half_life_days: float) -> float:
    """Return the heat at `now` of a page nobody touched since; the clock going back changes nothing."""
    days = max(0.0, (now - heat.at) / timedelta(days=1))
    return heat.value * math.pow(0.5, days / half_life_days)


def touch(heat: Heat, at: datetime, policy: Policy) -> Heat:
    """Return the heat after one access: it gains a share of what is missing to 1."""
    before = heat_after(heat, at, half_life_days=policy.heat_half_life_days)
    lifted = before + policy.access_gain * (1.0 - before)
    return Heat(min(1.0, lifted), max(at, heat.at))


def heat_at(heat: Heat, moment: Moment, policy: Policy) -> float:
    """Return the heat of a page nobody touched since, by the clock of its policy."""
    if policy.heat == "ema_tick":
        return heat_after_ticks(heat.value, max(0, moment.tick - heat.tick), alpha=policy.alpha)
    return heat_after(heat, moment.at, half_life_days=policy.heat_half_life_days)


def touch_at(heat: Heat, moment: Moment, policy: Policy) -> Heat:
    """Return the heat after one access, by the clock of its policy; under `ema_tick` a tick has one access or none.

    By query the access ends its tick. By turn the tick lasts until the user speaks again: what else is read in it
    changes nothing, and neither does an access of a tick that heat has left behind.
    """
    if policy.heat != "ema_tick":
        return touch(heat, moment.at, policy)
    if policy.tick == "turn" and moment.tick <= heat.tick:
        return heat
    faded = heat_after_ticks(heat.value, max(0, moment.tick - heat.tick), alpha=policy.alpha)
    return Heat(min(1.0, faded + policy.access_gain), max(moment.at, heat.at), max(moment.tick, heat.tick))


def cools_at_tick(heat: Heat, policy: Policy) -> int | None:
    """Return the tick at which a page nobody touches is cold, under `ema_tick`; None under time."""
    if policy.heat != "ema_tick":
        return None
    return heat.tick + ticks_until_below(heat.value, policy.cool_below, alpha=policy.alpha)


def is_cold_at(heat: Heat, moment: Moment, *, sealed_at: datetime, policy: Policy) -> bool:
    """Tell whether a page is cold by now, by the clock of its policy, and old enough."""
    if policy.heat != "ema_tick":
        return is_cold(heat, moment.at, sealed_at=sealed_at, policy=policy)
    is_grown = moment.at - sealed_at >= timedelta(hours=policy.min_warm_age_hours)
    return is_grown and heat_at(heat, moment, policy) < policy.cool_below


def first_of_each_hour(since: datetime, moments: Iterable[datetime]) -> list[datetime]:
    """Return the accesses that count: one an hour, none in the hour of `since`; else recall would feed itself."""
    counted: list[datetime] = []
    for moment in sorted(moments):
        if is_new_hour(counted[-1] if counted else since, moment):
            counted.append(moment)
    return counted


def apply_accesses(heat: Heat, accesses: Iterable[datetime], policy: Policy) -> Heat:
    """Return the heat after accesses, whatever order they are given in."""
    for at in first_of_each_hour(heat.at, accesses):
        heat = touch(heat, at, policy)
    return heat


def cools_at(heat: Heat, *, sealed_at: datetime, policy: Policy) -> datetime | None:
    """Return when a page nobody touches is cold: below the threshold and old enough; None for never."""
    half_lives = math.log2(heat.value / policy.cool_below) if heat.value > policy.cool_below else 0.0
    try:
        below = heat.at + timedelta(days=policy.heat_half_life_days * half_lives) + COOLING_MARGIN
        return max(below, sealed_at + timedelta(hours=policy.min_warm_age_hours))
    except OverflowError:
        return None


def is_cold(heat: Heat, now: datetime, *, sealed_at: datetime, policy: Policy) -> bool:
    """Tell whether a page is cold by now."""
    moment = cools_at(heat, sealed_at=sealed_at, policy=policy)
    return moment is not None and moment <= now


def is_pinned(value: float, *, was_pinned: bool, policy: Policy) -> bool:
    """Tell whether a page with this heat is shown in hot: pinned high, let go low, unchanged between."""
    return value >= (policy.unpin_below if was_pinned else policy.pin_at)


class Cooled(StrEnum):
    """What becomes of a page that is cold."""

    DISTILL = "distill"
    """It is handed to distillation."""
    ARCHIVE = "archive"
    """It has been distilled, so it may leave warm search."""
    WAIT = "wait"
    """Its distillation is under way; it is looked at again later."""
    REST = "rest"
    """Nothing that is not distilled is archived, and the policy does not distil on cooling."""


def decide_cooled(*, handed: bool, extracted: bool, policy: Policy) -> Cooled:
    """Decide about a cold page. `handed`: it has its place in the order of distillation."""
    if extracted:
        return Cooled.ARCHIVE
    if handed:
        return Cooled.WAIT
    return Cooled.DISTILL if policy.distill_when in {"cooled", "either"} else Cooled.REST


def heat_after_ticks(value: float, ticks: int, *, alpha: float) -> float:
    """Return EMA heat after ticks without an access."""
    return value * alpha**ticks


def heat_on_tick(value: float, *, alpha: float, accessed: bool) -> float:
    """Return EMA heat after one tick: alpha * heat + (1 - alpha) * accessed."""
    return alpha * value + (1.0 - alpha) * accessed


def ticks_until_below(value: float, threshold: float, *, alpha: float) -> int:
    """Return the first tick without access at which heat is below the threshold."""
    if value < threshold:
        return 0
    return math.floor(math.log(threshold / value) / math.log(alpha)) + 1


def half_life_ticks(alpha: float) -> float:
    """Return after how many ticks without access heat is halved."""
    return math.log(0.5) / math.log(alpha)


def recency(elapsed: timedelta, *, tau_hours: float) -> float:
    """Return the recency of a segment in 0..1: exp(-hours / tau)."""
    return math.exp(-max(0.0, elapsed / timedelta(hours=1)) / tau_hours)


def paper_recency(elapsed: timedelta, *, mu_seconds: float = MU_SECONDS) -> float:
    """Return recency as the MemoryOS paper has it: exp(-seconds / mu)."""
    return math.exp(-max(0.0, elapsed.total_seconds()) / mu_seconds)


def recency_of(elapsed: timedelta, policy: Policy) -> float:
    """Return the recency of a segment in 0..1 by its policy: the packaged code's, the paper's, the evaluation's.

    The evaluation code takes the time since a moment it has just set to now, which is always 1.
    """
    if policy.segment_recency == "constant":
        return 1.0
    if policy.segment_recency == "paper":
        return paper_recency(elapsed)
    return recency(elapsed, tau_hours=policy.segment_recency_tau_hours)


def segment_heat(
    *, n_visit: int, l_interaction: int, recency_now: float, weights: tuple[float, float, float] = (1, 1, 1)
) -> float:
    """Return linear heat alpha * visits + beta * pages + gamma * recency."""
    alpha, beta, gamma = weights
    return alpha * n_visit + beta * l_interaction + gamma * recency_now


def is_promoted(heat: float, *, waiting_pages: int, policy: Policy) -> bool:
    """Tell whether a segment's pages are distilled now. One with nothing left to distil never is."""
    return policy.distill_when in {"heated", "either"} and waiting_pages > 0 and heat >= policy.promote_at
