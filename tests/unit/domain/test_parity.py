"""The parity matrix: each published mechanism is a policy of its preset, and no other preset is needed for it."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from memoryos_pipeline.domain.forgetting import Hold, ends_at, lifetime_days, strengthened, weight
from memoryos_pipeline.domain.heat import Heat, Moment, cools_at_tick, heat_at, is_promoted, touch_at
from memoryos_pipeline.domain.paging import TurnMark, plan_pages
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.models.answer_shapes import SummaryAnswer

START = datetime(2026, 3, 1, tzinfo=UTC)


def _talk(turns: int) -> list[TurnMark]:
    return [
        TurnMark(n, START + timedelta(minutes=n), role="user" if n % 2 else "assistant") for n in range(1, turns + 1)
    ]


def _spans(turns: int, policy: Policy) -> list[tuple[int, int]]:
    return [(page.first_seq, page.last_seq) for page in plan_pages(_talk(turns), policy)]


class TestSeed000:
    POLICY = PRESETS["seed000"]

    def test_fifo_hot_buffer_with_batch_eviction_and_pages_of_five(self) -> None:
        """K = 12, b = 5: the thirteenth message leaves eight in hot and seals one page of messages 1 to 5."""
        assert _spans(12, self.POLICY) == []
        assert _spans(13, self.POLICY) == [(1, 5)]

    def test_ema_heat_by_tick_beta_distils_and_access_warms(self) -> None:
        """Alpha .9 and beta .3: distilled at tick 12; hit once at tick 5, at tick 13 instead."""
        fresh = Heat(1.0, START)
        hit = touch_at(fresh, Moment(START, 5), self.POLICY)

        assert self.POLICY.distill_when == "cooled"
        assert cools_at_tick(fresh, self.POLICY) == 12
        assert heat_at(fresh, Moment(START, 12), self.POLICY) == pytest.approx(0.2824, abs=5e-5)
        assert hit.value == pytest.approx(0.9**5 + 0.1, abs=1e-12)
        assert cools_at_tick(hit, self.POLICY) == 13

    def test_decay_resets_on_access_and_ends_at_theta(self) -> None:
        """e^(-.02 t), reset on access, deleted below .1: 115 days after the last access, however many there were."""
        hold = Hold("k", strengthened(50.0, self.POLICY, times=3), START, importance=1.0, pinned=False)
        end = ends_at(hold, self.POLICY)

        assert end is not None
        assert (end - START) / timedelta(days=1) == pytest.approx(115.13, abs=5e-3)


class TestBaiLab:
    POLICY = PRESETS["bai_lab"]

    def test_pages_are_question_and_answer_and_leave_one_by_one(self) -> None:
        """Ten pairs stay; the eleventh question lets the first pair go."""
        assert _spans(20, self.POLICY) == []
        assert _spans(21, self.POLICY) == [(1, 2)]

    def test_tau_five_promotes_and_nothing_left_does_not(self) -> None:
        """H >= 5 with something to analyse; a hot segment with nothing left stands in nobody's way."""
        assert is_promoted(5.0, waiting_pages=1, policy=self.POLICY)
        assert not is_promoted(500.0, waiting_pages=0, policy=self.POLICY)

    def test_the_papers_recency_reset_and_victim(self) -> None:
        """mu = 1e7 s, L alone is reset, the coldest gives way; nothing is forgotten."""
        chosen = (self.POLICY.segment_recency, self.POLICY.reset_on_extract, self.POLICY.evict)

        assert chosen == ("paper", "L", "lowest_heat")
        assert lifetime_days(self.POLICY) is None

    def test_lists_are_bounded(self) -> None:
        """A hundred statements of each side, the oldest go first; 2,000 warm pages; at most two themes a page."""
        assert (self.POLICY.knowledge_capacity, self.POLICY.capacity_victim) == (100, "oldest")
        assert self.POLICY.warm_capacity_pages == 2_000
        with pytest.raises(ValidationError):
            SummaryAnswer(summary="s", keywords=[], topics=["a", "b", "c"], continues=False)


class TestAMem:
    def test_every_message_is_a_note_at_once(self) -> None:
        """Pages of one message, distilled as soon as they are in a segment, never forgotten, linked."""
        policy = PRESETS["a_mem"]

        assert _spans(3, policy) == [(1, 1), (2, 2)]
        assert (policy.distill_when, policy.neighbours, policy.links_per_knowledge) == ("sealed", 5, 20)
        assert lifetime_days(policy) is None


class TestMemoryBank:
    POLICY = PRESETS["memorybank"]

    def test_strength_grows_by_one_a_recall(self) -> None:
        """S = 1, recalled at day 2: weight .6065 at day 3 and .2231 at day 5; unused it lives 2.3 days."""
        recalled, strength = START + timedelta(days=2), strengthened(1.0, self.POLICY)

        assert strength == 2.0
        assert weight(START + timedelta(days=3), recalled, strength_days=strength) == pytest.approx(0.6065, abs=5e-5)
        assert weight(START + timedelta(days=5), recalled, strength_days=strength) == pytest.approx(0.2231, abs=5e-5)
        assert lifetime_days(self.POLICY) == pytest.approx(2.3026, abs=5e-5)

    def test_days_and_the_whole_are_summarized(self) -> None:
        """Its daily and global summaries; recall alone strengthens."""
        assert (self.POLICY.rollups, self.POLICY.reinforce_on) == ("daily", "retrieved")


class TestMem0:
    @pytest.mark.parametrize(("name", "graph"), [("mem0", "off"), ("mem0g", "triples")])
    def test_each_exchange_is_extracted_at_once_and_nothing_fades(self, name: str, graph: str) -> None:
        """m = 10 messages stay in hot, s = 10 neighbours, operations; the graph is what sets mem0g apart."""
        policy = PRESETS[name]

        assert (policy.hot_capacity_turns, policy.neighbours, policy.resolution) == (10, 10, "ops")
        assert (policy.distill_when, policy.graph) == ("sealed", graph)
        assert lifetime_days(policy) is None
