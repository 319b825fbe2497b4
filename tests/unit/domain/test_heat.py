"""How warm pages and segments are; the numbers are the golden vectors of the published designs."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from memoryos_pipeline.domain.heat import (
    Cooled,
    Heat,
    apply_accesses,
    cools_at,
    decide_cooled,
    first_of_each_hour,
    half_life_ticks,
    heat_after,
    heat_after_ticks,
    heat_on_tick,
    is_cold,
    is_pinned,
    is_promoted,
    paper_recency,
    recency,
    recency_of,
    segment_heat,
    ticks_until_below,
    touch,
)
from memoryos_pipeline.domain.policies import Policy, Recency

POLICY = Policy()
NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)


class TestTicks:
    def test_a_page_nobody_reads_is_cold_after_twelve_ticks(self) -> None:
        """Alpha 0.9 from 1.0: the first value below 0.3 is 0.2824 at tick 12."""
        assert ticks_until_below(1.0, 0.3, alpha=0.9) == 12
        assert heat_after_ticks(1.0, 12, alpha=0.9) == pytest.approx(0.2824, abs=5e-5)
        assert heat_after_ticks(1.0, 11, alpha=0.9) >= 0.3
        assert ticks_until_below(0.2, 0.3, alpha=0.9) == 0

    def test_a_cold_page_climbs_to_the_pin_floor_in_nine_hits(self) -> None:
        """Alpha 0.9 from 0, a hit each tick: the first value of 0.6 or more is 0.6126 at the ninth."""
        heat, hits = 0.0, 0
        while heat < 0.6:
            heat, hits = heat_on_tick(heat, alpha=0.9, accessed=True), hits + 1

        assert (hits, heat) == (9, pytest.approx(0.6126, abs=5e-5))

    def test_heat_is_halved_every_six_and_a_half_ticks(self) -> None:
        """Alpha 0.9 has a half-life of 6.5788 ticks."""
        assert half_life_ticks(0.9) == pytest.approx(6.5788, abs=5e-5)

    def test_a_steady_reader_keeps_at_most_thirty_pages_warm(self) -> None:
        """Five hits and 0.4 new pages a query, threshold 0.3: never more than 30 pages at or above it."""
        draw, heats, most = random.Random(7), [1.0] * 5, 0
        for query in range(400):
            hit = set(draw.sample(range(len(heats)), 5))
            heats = [heat_on_tick(heat, alpha=0.9, accessed=n in hit) for n, heat in enumerate(heats)]
            heats += [1.0] * (query % 5 in {0, 2})
            most = max(most, sum(heat >= 0.3 for heat in heats))

        assert most <= 30


class TestTime:
    def test_heat_is_halved_in_a_half_life(self) -> None:
        """Seven days by default; a clock that goes back changes nothing."""
        heat = Heat(0.8, NOW)

        assert heat_after(heat, NOW + 7 * DAY, half_life_days=7) == pytest.approx(0.4)
        assert heat_after(heat, NOW - DAY, half_life_days=7) == 0.8

    def test_an_access_gains_a_tenth_of_what_is_missing(self) -> None:
        """0.5 becomes 0.55, and heat never passes 1."""
        assert touch(Heat(0.5, NOW), NOW, POLICY) == Heat(pytest.approx(0.55), NOW)
        assert touch(Heat(1.0, NOW), NOW, POLICY).value == 1.0

    def test_recalling_something_again_and_again_counts_once_an_hour(self) -> None:
        """Two hundred accesses in an hour warm like one; the hour of the last change counts no more."""
        heat = Heat(0.2, NOW)
        burst = [NOW + timedelta(hours=1, seconds=n) for n in range(200)]

        assert apply_accesses(heat, burst, POLICY) == touch(heat, burst[0], POLICY)
        assert apply_accesses(heat, [NOW + timedelta(minutes=5)], POLICY) == heat
        assert len(first_of_each_hour(NOW, [*burst, NOW + timedelta(hours=2)])) == 2


class TestCooling:
    def test_the_moment_of_cooling_is_known_at_once(self) -> None:
        """From 1.0 with a half-life of 7 days, 0.3 is crossed after 7 * log2(1/0.3) = 12.159 days."""
        moment = cools_at(Heat(1.0, NOW), sealed_at=NOW, policy=POLICY)

        assert moment is not None
        assert (moment - NOW) / DAY == pytest.approx(12.1588, abs=1e-3)
        assert heat_after(Heat(1.0, NOW), moment, half_life_days=7) < 0.3
        assert heat_after(Heat(1.0, NOW), moment - timedelta(seconds=1), half_life_days=7) > 0.3

    def test_a_young_page_does_not_cool(self) -> None:
        """A page below the threshold stays warm until it is 24 hours old."""
        assert cools_at(Heat(0.1, NOW), sealed_at=NOW, policy=POLICY) == NOW + DAY
        assert not is_cold(Heat(0.1, NOW), NOW + DAY - timedelta(seconds=1), sealed_at=NOW, policy=POLICY)
        assert is_cold(Heat(0.1, NOW), NOW + DAY, sealed_at=NOW, policy=POLICY)

    def test_a_page_may_be_set_to_never_cool(self) -> None:
        """A half-life beyond the calendar means never, not an error."""
        never = Policy(heat_half_life_days=1e12)

        assert cools_at(Heat(1.0, NOW), sealed_at=NOW, policy=never) is None
        assert not is_cold(Heat(1.0, NOW), NOW + 9_000 * DAY, sealed_at=NOW, policy=never)

    @pytest.mark.parametrize(
        ("handed", "extracted", "when", "fate"),
        [
            (False, False, "either", Cooled.DISTILL),
            (False, False, "cooled", Cooled.DISTILL),
            (False, False, "heated", Cooled.REST),
            (True, False, "either", Cooled.WAIT),
            (True, True, "either", Cooled.ARCHIVE),
            (True, True, "heated", Cooled.ARCHIVE),
        ],
    )
    def test_nothing_is_archived_before_it_is_distilled(
        self, handed: bool, extracted: bool, when: str, fate: Cooled
    ) -> None:
        """A cold page is distilled first, once, whichever trigger came first."""
        policy = Policy(distill_when=when)  # type: ignore[arg-type]

        assert decide_cooled(handed=handed, extracted=extracted, policy=policy) is fate


class TestPins:
    def test_a_pin_has_hysteresis(self) -> None:
        """Pinned from 0.8, let go below 0.6, and between the two it stays as it was."""
        assert is_pinned(0.8, was_pinned=False, policy=POLICY)
        assert not is_pinned(0.79, was_pinned=False, policy=POLICY)
        assert is_pinned(0.6, was_pinned=True, policy=POLICY)
        assert not is_pinned(0.59, was_pinned=True, policy=POLICY)


class TestSegmentHeat:
    def test_visits_pages_and_recency_add_up(self) -> None:
        """A new one-page segment 2.0; four fresh pages 5.0; three pages and a visit 5.0."""
        assert segment_heat(n_visit=0, l_interaction=1, recency_now=1.0) == 2.0
        assert segment_heat(n_visit=0, l_interaction=4, recency_now=1.0) == 5.0
        assert segment_heat(n_visit=1, l_interaction=3, recency_now=1.0) == 5.0

    def test_the_weights_are_the_policy_of_a_preset(self) -> None:
        """The evaluation code weighs 0.8, 0.8 and 0.0001."""
        heat = segment_heat(n_visit=3, l_interaction=4, recency_now=1.0, weights=(0.8, 0.8, 0.0001))

        assert heat == pytest.approx(5.6001)

    def test_recency_as_the_code_has_it_and_as_the_paper_has_it(self) -> None:
        """Tau 24 h: 0.3679 after a day, 0.0498 after three; mu 1e7 s: 0.9914 after a day, 0.9413 after seven."""
        assert recency(DAY, tau_hours=24) == pytest.approx(0.3679, abs=5e-5)
        assert recency(3 * DAY, tau_hours=24) == pytest.approx(0.0498, abs=5e-5)
        assert paper_recency(DAY) == pytest.approx(0.9914, abs=5e-5)
        assert paper_recency(7 * DAY) == pytest.approx(0.9413, abs=5e-5)
        assert recency(-DAY, tau_hours=24) == paper_recency(-DAY) == 1.0

    def test_a_segment_with_nothing_left_is_never_promoted(self) -> None:
        """However hot: no page that is not distilled, no promotion, so it cannot block the others."""
        assert is_promoted(5.0, waiting_pages=1, policy=POLICY)
        assert not is_promoted(500.0, waiting_pages=0, policy=POLICY)
        assert not is_promoted(4.99, waiting_pages=9, policy=POLICY)
        assert not is_promoted(9.0, waiting_pages=9, policy=Policy(distill_when="cooled"))


class TestRecencyOfAPolicy:
    @pytest.mark.parametrize(
        ("variant", "days", "expected"),
        [("hours", 1, 0.3679), ("hours", 3, 0.0498), ("paper", 1, 0.9914), ("paper", 7, 0.9413), ("constant", 7, 1.0)],
    )
    def test_the_three_published_variants(self, variant: Recency, days: float, expected: float) -> None:
        """exp(-hours/24) of the packaged code, exp(-seconds/1e7) of the paper, about 1 of the evaluation code."""
        policy = Policy(segment_recency=variant)

        assert recency_of(timedelta(days=days), policy) == pytest.approx(expected, abs=5e-5)
