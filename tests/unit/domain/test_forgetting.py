"""The forgetting law gives the published values, and the moment of forgetting agrees with it."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from memoryos_pipeline.domain.forgetting import (
    Hold,
    bounded_bias,
    ebbinghaus_strength,
    ends_at,
    expires_at,
    forget_at,
    is_braked,
    is_held,
    is_new_hour,
    lifetime_days,
    reinforced_strength,
    stochastic_forget_at,
    strength_of_rate,
    strengthened,
    survival,
    weight,
)
from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.policies_presets import PRESETS

START = datetime(2026, 1, 1, tzinfo=UTC)


def _after(days: float) -> datetime:
    return START + timedelta(days=days)


def _weight(days: float, strength_days: float) -> float:
    return weight(_after(days), START, strength_days=strength_days)


def _life_days(strength_days: float, *, w0: float = 1.0) -> float:
    end = forget_at(START, strength_days=strength_days, forget_below=0.1, w0=w0)
    assert end is not None
    return (end - START) / timedelta(days=1)


class TestWeigh:
    @pytest.mark.parametrize(("days", "strength", "expected"), [(1, 1, 0.3679), (1, 2, 0.6065), (5, 5, 0.3679)])
    def test_retention_follows_the_paper(self, days: float, strength: float, expected: float) -> None:
        """e^(-t/S) at (1 day, S=1), (1, 2) and (5, 5)."""
        assert _weight(days, strength) == pytest.approx(expected, abs=5e-5)

    def test_stronger_memories_fade_more_slowly(self) -> None:
        """A higher strength keeps more at every later moment: the published code has this upside down."""
        for days in (0.01, 1, 30, 400):
            weights = [_weight(days, strength) for strength in (1, 2, 5, 50)]
            assert weights == sorted(weights)
            assert len(set(weights)) == 4

    def test_the_daily_rate_has_its_half_life(self) -> None:
        """lambda = .02 a day leaves one half at 34.657 days."""
        assert _weight(34.657, strength_of_rate(0.02)) == pytest.approx(0.5, abs=1e-5)

    def test_an_access_resets_the_weight(self) -> None:
        """Accessed at day 40, a row weighs 1 then and decays from there."""
        assert weight(_after(40), _after(40), strength_days=50) == 1.0
        assert weight(_after(90), _after(40), strength_days=50) == pytest.approx(math.exp(-1))

    def test_recall_lengthens_the_memory(self) -> None:
        """MemoryBank: S=1, recalled at day 2, so S=2: .6065 at day 3 and .2231 at day 5."""
        strength = ebbinghaus_strength(1)
        assert strength == 2
        assert weight(_after(3), _after(2), strength_days=strength) == pytest.approx(0.6065, abs=5e-5)
        assert weight(_after(5), _after(2), strength_days=strength) == pytest.approx(0.2231, abs=5e-5)

    def test_the_weight_stays_between_zero_and_one(self) -> None:
        """Neither a clock behind the last reinforcement nor an age of centuries leaves 0..1."""
        assert _weight(-1000, 1) == 1.0
        assert _weight(10**6, 0.001) == 0.0


class TestForgetAt:
    @pytest.mark.parametrize(("rate_per_day", "days"), [(0.01, 230.26), (0.02, 115.13), (0.05, 46.05)])
    def test_the_rate_sets_the_lifetime(self, rate_per_day: float, days: float) -> None:
        """exp_rate with theta .1: 230.26, 115.13 and 46.05 days."""
        assert _life_days(strength_of_rate(rate_per_day)) == pytest.approx(days, abs=5e-3)

    def test_a_lifetime_is_a_multiple_of_the_strength(self) -> None:
        """With theta .1 a row lives 2.3026 strengths."""
        for strength in (1, 2, 50, 365):
            assert _life_days(strength) == pytest.approx(2.302585 * strength, rel=1e-6)

    def test_the_weight_crosses_the_threshold_then(self) -> None:
        """At forget_at the weight is theta: just before it is above, just after below."""
        end = forget_at(START, strength_days=50, forget_below=0.1, w0=0.7)
        assert end is not None
        minute = timedelta(minutes=1)
        assert weight(end - minute, START, strength_days=50, w0=0.7) > 0.1
        assert weight(end + minute, START, strength_days=50, w0=0.7) < 0.1

    def test_what_starts_below_the_threshold_is_due_at_once(self) -> None:
        """A start weight under theta never gives a moment before the row existed."""
        assert _life_days(50, w0=0.05) == 0
        assert _life_days(50, w0=0.0) == 0

    def test_held_rows_have_no_end(self) -> None:
        """Pinned or important enough: no moment of forgetting."""
        assert forget_at(START, strength_days=50, forget_below=0.1, held=True) is None

    def test_a_lifetime_beyond_the_calendar_is_no_end(self) -> None:
        """A strength of millions of years does not fail."""
        assert forget_at(START, strength_days=1e12, forget_below=0.1) is None


class TestHold:
    def test_importance_and_pins_hold(self) -> None:
        """Importance holds from the floor on, a pin always."""
        assert is_held(pinned=False, importance=0.9, importance_floor=0.9)
        assert not is_held(pinned=False, importance=0.89, importance_floor=0.9)
        assert is_held(pinned=True, importance=0.0, importance_floor=0.9)


class TestReinforce:
    def test_each_reinforcement_multiplies_up_to_the_cap(self) -> None:
        """50 days times 1.5 again and again ends at 365 and stays there."""
        strengths = [50.0]
        for _ in range(6):
            strengths.append(reinforced_strength(strengths[-1], factor=1.5, cap_days=365))
        assert strengths[1:4] == [75.0, 112.5, 168.75]
        assert strengths[5:] == [365, 365]

    def test_a_strength_above_the_cap_is_not_lowered(self) -> None:
        """A policy that got stricter weakens nothing when it reinforces."""
        assert reinforced_strength(500, factor=1.5, cap_days=365) == 500

    def test_recalls_stop_counting_at_the_cap(self) -> None:
        """Ebbinghaus strength grows by its step and stops at its cap."""
        assert [ebbinghaus_strength(n, cap_days=3) for n in range(5)] == [1, 2, 3, 3, 3]

    def test_the_same_hour_is_no_new_hour(self) -> None:
        """A touch counts from the next full hour on, and never backwards."""
        assert not is_new_hour(START, START + timedelta(minutes=59))
        assert is_new_hour(START, START + timedelta(minutes=60))
        assert not is_new_hour(START, START - timedelta(hours=5))


class TestBrake:
    def test_too_large_a_share_brakes(self) -> None:
        """More than 5 % of a scope stops the sweep; exactly 5 % does not."""
        assert is_braked(51, 1000, share=0.05, min_rows=20)
        assert not is_braked(50, 1000, share=0.05, min_rows=20)

    def test_a_handful_never_brakes(self) -> None:
        """Nineteen of nineteen rows may go; twenty of twenty may not."""
        assert not is_braked(19, 19, share=0.05, min_rows=20)
        assert is_braked(20, 20, share=0.05, min_rows=20)


def _hold(key: str = "a", *, pinned: bool = False, importance: float = 0.5, strength_days: float = 50.0) -> Hold:
    return Hold(key, strength_days, START, importance, pinned)


class TestEnd:
    def test_an_untouched_item_of_the_default_lives_115_days(self) -> None:
        """theta = 0.1 and strength 50 days; in the memorybank preset the same is 2.3 days."""
        end = ends_at(_hold(), DEFAULT)

        assert end is not None
        assert (end - START) / timedelta(days=1) == pytest.approx(115.13, abs=5e-3)
        assert lifetime_days(PRESETS["memorybank"]) == pytest.approx(2.3026, abs=5e-5)

    @pytest.mark.parametrize("law", ["none", "bounded_bias"])
    def test_laws_that_only_rank_take_nothing(self, law: str) -> None:
        """Such knowledge never ends by decay, and says so."""
        policy = Policy(forget=law)  # type: ignore[arg-type]

        assert ends_at(_hold(), policy) is None
        assert lifetime_days(policy) is None

    @pytest.mark.parametrize("law", ["exp_rate", "ebbinghaus_strength", "stochastic"])
    def test_pins_and_importance_hold_under_every_law(self, law: str) -> None:
        """Decay takes neither what is pinned nor what is important; without a floor only the pin holds."""
        policy, floorless = Policy(forget=law), Policy(forget=law, importance_floor=None)  # type: ignore[arg-type]

        assert ends_at(_hold(pinned=True), policy) is None
        assert ends_at(_hold(importance=0.8), policy) is None
        assert ends_at(_hold(importance=1.0), floorless) is not None

    def test_a_ttl_is_apart_from_decay(self) -> None:
        """It counts from recording, whatever decay says."""
        assert expires_at(START, 7.0) == _after(7)
        assert expires_at(START, None) is None


class TestStrengthen:
    def test_exp_rate_only_starts_the_clock_again(self) -> None:
        """Its rate is a constant."""
        assert strengthened(50.0, PRESETS["seed000"], times=9) == 50.0

    def test_memorybank_adds_a_day_each_time(self) -> None:
        """S starts at 1 and is 4 after three recalls."""
        assert strengthened(1.0, PRESETS["memorybank"], times=3) == 4.0

    def test_the_default_multiplies_up_to_its_cap(self) -> None:
        """Half more each time, a year at most."""
        assert strengthened(50.0, DEFAULT) == 75.0
        assert strengthened(50.0, DEFAULT, times=50) == 365.0


class TestDraw:
    def test_chance_is_seeded(self) -> None:
        """The same row and seed end at the same moment, another seed at another one."""
        first, again, other = (stochastic_forget_at(START, strength_days=10, key="k", seed=seed) for seed in (1, 1, 2))

        assert first == again
        assert first != other

    def test_looking_more_often_does_not_kill_more(self) -> None:
        """Of 4,000 rows as many live after 7 days as R says, whether somebody looked daily or once.

        The published code draws again at each look with the whole elapsed time, which leaves 0.4 % at S = 1.
        """
        ends = [stochastic_forget_at(START, strength_days=7, key=str(n), seed=3) for n in range(4_000)]
        alive = ends
        for day in range(1, 8):
            alive = [end for end in alive if end is not None and end > _after(day)]

        assert alive == [end for end in ends if end is not None and end > _after(7)]
        assert len(alive) / len(ends) == pytest.approx(survival(7, from_days=0, to_days=7), abs=0.025)

    def test_survival_is_conditional(self) -> None:
        """R(t2)/R(t1), so seven daily steps are one step of seven days."""
        steps = math.prod(survival(2, from_days=day, to_days=day + 1) for day in range(7))

        assert steps == pytest.approx(survival(2, from_days=0, to_days=7), rel=1e-12)


class TestBias:
    def test_the_bias_is_bounded_and_never_a_filter(self) -> None:
        """0.3 for what nobody uses, 1.5 for what is used now."""
        assert bounded_bias(0.0, low=0.3, high=1.5) == 0.3
        assert bounded_bias(1.0, low=0.3, high=1.5) == 1.5
