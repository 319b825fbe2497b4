"""Making room takes the right pages and statements, and never one that is young, pinned or not distilled."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memoryos_pipeline.domain.eviction import Eviction, Statement, WarmUnit, plan_eviction, plan_overflow
from memoryos_pipeline.domain.policies import Evict, Policy, Victim

NOW = datetime(2026, 3, 9, tzinfo=UTC)


def _unit(number: int, *, heat: float = 0.5, visits: int = 0, age_days: float = 9, **more: bool) -> WarmUnit:
    flags = {"extracted": True, **more}
    return WarmUnit(UUID(int=number), heat, visits, NOW - timedelta(days=age_days), **flags)


def _evict(evict: Evict, *units: WarmUnit, capacity: int = 2) -> Eviction:
    return plan_eviction(units, now=NOW, policy=Policy(evict=evict, warm_capacity_pages=capacity))


class TestPlanEviction:
    @pytest.mark.parametrize(("evict", "victim"), [("lowest_heat", 1), ("lfu", 2), ("oldest", 3)])
    def test_each_policy_has_its_victim(self, evict: Evict, victim: int) -> None:
        """The coldest, the least used, the oldest: three different pages here."""
        coldest, unused, oldest = _unit(1, heat=0.1, visits=9), _unit(2, visits=1), _unit(3, visits=9, age_days=20)

        assert _evict(evict, coldest, unused, oldest).archive == [UUID(int=victim)]

    def test_what_is_not_distilled_is_distilled_first(self) -> None:
        """Never before extraction: BAI-LAB's capacity rule loses what it has not read yet."""
        plan = _evict("lfu", _unit(1, extracted=False), _unit(2, visits=5), _unit(3, visits=5))

        assert plan == Eviction(archive=[], extract_first=[UUID(int=1)])

    def test_who_is_being_distilled_is_waited_for(self) -> None:
        """It counts as gone; nobody else is taken in its place."""
        plan = _evict("lfu", _unit(1, extracted=False, handed=True), _unit(2, visits=5), _unit(3, visits=5))

        assert plan == Eviction()

    def test_the_young_and_the_pinned_stay(self) -> None:
        """LFU would take the page that came in a moment ago, with no visits yet."""
        plan = _evict("lfu", _unit(1, age_days=0.5), _unit(2, pinned=True), _unit(3, visits=7), _unit(4, visits=8))

        assert plan.archive == [UUID(int=3), UUID(int=4)]

    def test_nobody_leaves_while_there_is_room(self) -> None:
        """Neither at capacity nor without a policy."""
        assert _evict("oldest", _unit(1), _unit(2)) == Eviction()
        assert _evict("none", _unit(1), _unit(2), _unit(3)) == Eviction()


def _statement(
    number: int, *, weight: float = 0.5, said: float = 9, learnt: float = 9, of_assistant: bool = False
) -> Statement:
    said_at, learnt_at = NOW - timedelta(days=said), NOW - timedelta(days=learnt)
    return Statement(UUID(int=number), of_assistant, weight, said_at, learnt_at)


def _over(victim: Victim, *statements: Statement, capacity: int = 2) -> list[int]:
    policy = Policy(capacity_victim=victim, knowledge_capacity=capacity)
    return [each.int for each in plan_overflow(statements, now=NOW, policy=policy)]


class TestPlanOverflow:
    @pytest.mark.parametrize(("victim", "goes"), [("oldest", 3), ("lowest_weight", 1)])
    def test_each_policy_has_its_victim(self, victim: Victim, goes: int) -> None:
        """BAI-LAB's lists lose what was said first, however much it is used; by weight the weakest goes."""
        weakest, other, oldest = _statement(1, weight=0.2), _statement(2), _statement(3, said=20, weight=0.9)

        assert _over(victim, weakest, other, oldest) == [goes]

    def test_each_side_has_its_own_room(self) -> None:
        """A talkative assistant takes no room from the user."""
        user = [_statement(n, weight=0.1 * n) for n in (1, 2)]
        assistant = [_statement(n, weight=0.1 * n, of_assistant=True) for n in (3, 4, 5, 6)]

        assert _over("lowest_weight", *user, *assistant) == [3, 4]

    def test_what_was_just_learnt_stays(self) -> None:
        """By weight a young statement is no victim, and counts all the same; by age an imported one may go at once."""
        young = _statement(1, weight=0.1, said=99, learnt=0)
        rest = [_statement(2, weight=0.4), _statement(3, weight=0.5)]

        assert _over("lowest_weight", young, *rest) == [2]
        assert _over("lowest_weight", young, *rest, capacity=1) == [2, 3]
        assert _over("oldest", young, *rest) == [1]

    def test_without_a_capacity_everything_stays(self) -> None:
        """No number, no limit; and at the number nothing goes."""
        statements = [_statement(n) for n in range(1, 4)]

        assert plan_overflow(statements, now=NOW, policy=Policy()) == []
        assert _over("oldest", *statements, capacity=3) == []
