"""Heat for every history of accesses."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.heat import (
    Heat,
    Moment,
    apply_accesses,
    cools_at,
    cools_at_tick,
    heat_after,
    heat_after_ticks,
    heat_at,
    heat_on_tick,
    is_cold,
    is_cold_at,
    ticks_until_below,
    touch,
    touch_at,
)
from memoryos_pipeline.domain.policies import Policy

POLICY = Policy()
START = datetime(2026, 3, 1, tzinfo=UTC)
HEATS = st.floats(0.0, 1.0)
HOURS = st.floats(0.0, 5_000.0)


@given(st.lists(st.booleans(), max_size=200), HEATS, st.floats(0.5, 0.99))
def test_lazy_ticks_equal_stepwise_ticks(hits: list[bool], start: float, alpha: float) -> None:
    """Evaluated only when a page is hit, EMA heat is what updating every page at every tick gives."""
    stepwise, lazy, waited = start, start, 0
    for hit in hits:
        stepwise = heat_on_tick(stepwise, alpha=alpha, accessed=hit)
        waited += 1
        if hit:
            lazy, waited = heat_after_ticks(lazy, waited, alpha=alpha) + (1 - alpha), 0

    assert heat_after_ticks(lazy, waited, alpha=alpha) == pytest.approx(stepwise, abs=1e-12)


@given(st.lists(st.booleans(), max_size=200), HEATS, st.floats(0.01, 0.5))
def test_the_tick_law_of_a_policy_is_the_stepwise_one(hits: list[bool], start: float, gain: float) -> None:
    """Touched only at its hits, a page has the heat that a step at every retrieval gives, and cools at its tick."""
    policy = Policy(heat="ema_tick", access_gain=gain, min_warm_age_hours=0.0)
    stepwise, lazy = start, Heat(start, START)
    for tick, hit in enumerate(hits, start=1):
        stepwise = heat_on_tick(stepwise, alpha=policy.alpha, accessed=hit)
        lazy = touch_at(lazy, Moment(START, tick), policy) if hit else lazy
    cold = cools_at_tick(lazy, policy)

    assert heat_at(lazy, Moment(START, len(hits)), policy) == pytest.approx(stepwise, abs=1e-12)
    assert cold is not None
    assert is_cold_at(lazy, Moment(START, cold), sealed_at=START, policy=policy)
    assert cold == lazy.tick or not is_cold_at(lazy, Moment(START, cold - 2), sealed_at=START, policy=policy)


@given(st.lists(st.integers(0, 3), max_size=100), HEATS)
def test_a_turn_counts_its_readings_once(readings: list[int], start: float) -> None:
    """By turn a page read thrice before the user speaks again is as warm as one read once: a step at every turn."""
    policy = Policy(heat="ema_tick", tick="turn")
    stepwise, lazy = start, Heat(start, START)
    for tick, times in enumerate(readings, start=1):
        stepwise = heat_on_tick(stepwise, alpha=policy.alpha, accessed=times > 0)
        for _ in range(times):
            lazy = touch_at(lazy, Moment(START, tick), policy)

    assert heat_at(lazy, Moment(START, len(readings)), policy) == pytest.approx(stepwise, abs=1e-12)


@given(st.lists(st.tuples(HOURS, st.booleans()), max_size=50), HEATS)
def test_lazy_time_equals_stepwise_time(steps: list[tuple[float, bool]], start: float) -> None:
    """However often heat is looked at in between, the value is that of one evaluation."""
    stepwise = lazy = Heat(start, START)
    for hours, hit in steps:
        now = stepwise.at + timedelta(hours=hours)
        stepwise = Heat(heat_after(stepwise, now, half_life_days=7), now)
        if hit:
            stepwise, lazy = touch(stepwise, now, POLICY), touch(lazy, now, POLICY)

    assert heat_after(lazy, stepwise.at, half_life_days=7) == pytest.approx(stepwise.value, abs=1e-12)


@given(HEATS, st.lists(HOURS, max_size=30))
def test_heat_stays_between_zero_and_one(start: float, accesses: list[float]) -> None:
    """No history leaves the scale, and the order accesses are told in makes no difference."""
    moments = [START + timedelta(hours=hours) for hours in accesses]
    heat = apply_accesses(Heat(start, START), moments, POLICY)

    assert 0.0 <= heat.value <= 1.0
    assert apply_accesses(Heat(start, START), reversed(moments), POLICY) == heat


@given(HEATS, st.floats(0.01, 400.0), st.floats(0.01, 0.99))
def test_cooling_is_the_moment_heat_is_below(start: float, half_life: float, threshold: float) -> None:
    """At the closed-form moment a page is cold; a minute before it is not."""
    policy = Policy(heat_half_life_days=half_life, cool_below=threshold, min_warm_age_hours=0.0)
    heat = Heat(start, START)
    moment = cools_at(heat, sealed_at=START, policy=policy)

    assert moment is not None
    assert heat_after(heat, moment, half_life_days=half_life) <= threshold
    assert is_cold(heat, moment, sealed_at=START, policy=policy)
    before = moment - timedelta(minutes=1)
    assert before < START or heat_after(heat, before, half_life_days=half_life) >= threshold


@given(HEATS, HEATS, HOURS)
def test_an_access_never_cools(start: float, other: float, hours: float) -> None:
    """Being read lifts heat and puts cooling off; a warmer page never cools sooner."""
    heat, now = Heat(start, START), START + timedelta(hours=hours)
    touched = touch(heat, now, POLICY)
    cooler, warmer = sorted((start, other))

    assert touched.value >= heat_after(heat, now, half_life_days=7)
    assert _cools(touched) >= _cools(heat)
    assert _cools(Heat(warmer, START)) >= _cools(Heat(cooler, START))


@given(st.floats(0.001, 1.0), st.floats(0.001, 1.0), st.floats(0.1, 0.99))
def test_ticks_to_cold_are_the_first_that_are_cold(start: float, threshold: float, alpha: float) -> None:
    """Below at that tick, not below at the one before."""
    ticks = ticks_until_below(start, threshold, alpha=alpha)

    assert heat_after_ticks(start, ticks, alpha=alpha) <= threshold * (1 + 1e-9)
    assert ticks == 0 or heat_after_ticks(start, ticks - 1, alpha=alpha) >= threshold * (1 - 1e-9)


def _cools(heat: Heat) -> datetime:
    moment = cools_at(heat, sealed_at=START, policy=POLICY)
    assert moment is not None
    return moment
