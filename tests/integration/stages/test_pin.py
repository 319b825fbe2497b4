"""Pinning, expiry, and what a change of policy does to knowledge that is there already."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages.forget import forget, preview_forgetting
from memoryos_pipeline.stages.pin import pin_knowledge
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.sweeps import owe_due
from tests.conftest import Stack
from tests.integration.stages.cold import START, Cold

USE = text("update memoryos.knowledge set last_reinforced_at = memoryos.now() where knowledge_id = :used")


def _sweep(cold: Cold) -> None:
    owe_due(cold.stack.ledger_database, name="forget")
    for lease in cold.claim(WorkKind.FORGET):
        forget(cold.parts, lease)


def _one(cold: Cold, *, policy: Policy | None = None) -> UUID:
    """Learn one thing on day 0; return its id."""
    cold.at(0)
    if policy is not None:
        put_policy(cold.stack.app, cold.tenant_id, user_id=None, preset="default", policy=policy)
    cold.page("food=ramen")
    cold.work()
    ((knowledge,),) = cold.rows("select knowledge_id from memoryos.knowledge")
    return knowledge  # type: ignore[no-any-return]


def _ends(cold: Cold) -> list[float | None]:
    rows = cold.rows("select forget_at from memoryos.knowledge order by knowledge_id")
    return [None if at is None else (at - START) / timedelta(days=1) for (at,) in rows]


class TestPin:
    def test_a_pin_outlives_every_sweep_and_unpinning_starts_the_clock(self, stack: Stack) -> None:
        """Pinned for a year it is there; let go, it lives its whole time from that moment on."""
        cold = Cold(stack)
        knowledge = _one(cold)
        assert pin_knowledge(cold.parts, cold.tenant_id, knowledge, pinned=True)
        assert not pin_knowledge(cold.parts, cold.tenant_id, knowledge, pinned=True)
        cold.at(365)
        _sweep(cold)
        assert len(cold.live()) == 1
        assert pin_knowledge(cold.parts, cold.tenant_id, knowledge, pinned=False)
        _sweep(cold)
        assert len(cold.live()) == 1
        cold.at(365 + 116)
        _sweep(cold)

        assert cold.live() == []
        kinds = cold.rows("select kind from memoryos.event where kind like 'knowledge_%pinned' order by event_id")
        assert kinds == [("knowledge_pinned",), ("knowledge_unpinned",)]

    def test_only_what_is_live_can_be_pinned(self, stack: Stack) -> None:
        """An unknown id is no statement."""
        with pytest.raises(NotFoundError):
            pin_knowledge(Cold(stack).parts, stack.tenant_id, mint_id(), pinned=True)


class TestExpire:
    def test_a_ttl_takes_what_is_still_strong(self, stack: Stack) -> None:
        """Ten days after recording it goes, important or not; restored, it has its ten days again."""
        cold = Cold(stack)
        knowledge = _one(cold, policy=Policy(ttl_days=10.0, importance_floor=0.1))
        cold.at(9)
        _sweep(cold)
        assert len(cold.live()) == 1
        cold.at(11)
        _sweep(cold)
        assert cold.live() == []
        assert restore_knowledge(cold.parts, cold.tenant_id, knowledge)
        cold.at(20)
        _sweep(cold)
        assert len(cold.live()) == 1

    def test_a_pin_keeps_what_would_expire(self, stack: Stack) -> None:
        """Nothing but a person takes what is pinned."""
        cold = Cold(stack)
        pin_knowledge(cold.parts, cold.tenant_id, _one(cold, policy=Policy(ttl_days=10.0)), pinned=True)
        cold.at(99)
        _sweep(cold)

        assert len(cold.live()) == 1


class TestCapacity:
    def test_the_oldest_of_each_side_give_way(self, stack: Stack) -> None:
        """BAI-LAB's bounded lists: two statements of the user stay and two of the assistant; a pin does not count."""
        cold = Cold(stack)
        first = _one(cold, policy=Policy(knowledge_capacity=2, importance_floor=None))
        pin_knowledge(cold.parts, cold.tenant_id, first, pinned=True)
        for day in range(1, 5):
            cold.at(day)
            cold.page(f"statement {day}", f"assistant> remark {day}", day=day)
            cold.work()
        _sweep(cold)

        assert cold.live() == ["Maya: the food is ramen", "remark 3", "remark 4", "statement 3", "statement 4"]
        assert cold.rows("select count(*) from memoryos.event where kind = 'knowledge_forgotten'") == [(4,)]

    def test_the_weakest_give_way_by_weight(self, stack: Stack) -> None:
        """What goes on being used stays though it was said first."""
        cold = Cold(stack)
        used = _one(cold, policy=Policy(knowledge_capacity=2, importance_floor=None, capacity_victim="lowest_weight"))
        for day in range(1, 5):
            cold.at(day)
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(USE, {"used": used})
            cold.page(f"statement {day}", day=day)
            cold.work()
            _sweep(cold)

        assert cold.live() == ["Maya: the food is ramen", "statement 4"]


class TestChangeOfPolicy:
    def test_ends_follow_the_policy_in_force_and_strength_stays(self, stack: Stack) -> None:
        """From 115 days to never and to 346, without a word of what was."""
        cold = Cold(stack)
        _one(cold)
        assert _ends(cold) == [pytest.approx(115.13, abs=0.01)]
        put_policy(stack.app, cold.tenant_id, user_id=None, preset="mem0", policy=PRESETS["mem0"])
        _sweep(cold)
        assert _ends(cold) == [None]
        put_policy(stack.app, cold.tenant_id, user_id="maya", preset="default", policy=Policy(forget_below=0.001))
        _sweep(cold)

        assert _ends(cold) == [pytest.approx(345.39, abs=0.01)]
        assert cold.rows("select strength_days from memoryos.knowledge") == [(50.0,)]

    def test_a_policy_that_would_take_everything_meets_the_brake(self, stack: Stack) -> None:
        """After 10 days memorybank's 2.3 would take all: a dry run says so, and the sweep stops."""
        cold = Cold(stack)
        _one(cold, policy=Policy(forget_brake_min_rows=1))
        ((scope,),) = cold.rows("select scope_id from memoryos.scope")
        cold.at(10)
        harsh = Policy(strength_days=1.0, forget_below=0.9999, forget_brake_min_rows=1)
        put_policy(stack.app, cold.tenant_id, user_id=None, preset="default", policy=harsh)
        _sweep(cold)
        with stack.app.transaction(cold.tenant_id) as connection:
            preview = preview_forgetting(cold.parts, connection, cold.tenant_id, scope)

        assert preview.stops
        assert preview.assessment.due_rows == len(cold.live()) == 1
