"""A scope acts under the policy in force for it, in every stage, from the moment it is set."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages.advance import advance
from memoryos_pipeline.store.policies import find_policy, list_versions, set_policy
from memoryos_pipeline.store.repair import repair_tenant
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import START, count_statements, create_scope, numbered, record, rows, set_clock
from tests.conftest import Stack
from tests.lifecycle_builders import Walk

SMALL = Policy(page_size_turns=2, hot_capacity_turns=2)


def _set(stack: Stack, policy: Policy, *, user_id: str | None = None, preset: str = "default") -> int:
    with stack.app.transaction(stack.tenant_id) as connection:
        row, _ = set_policy(connection, stack.tenant_id, user_id=user_id, preset=preset, policy=policy)
    return row.version


def _in_force(stack: Stack, user_id: str | None) -> Policy | None:
    with stack.app.transaction(stack.tenant_id) as connection:
        found = find_policy(connection, stack.tenant_id, user_id=user_id)
    return found.policy if found else None


def _pages(stack: Stack) -> list[int]:
    return [n for (n,) in rows(stack, "select last_seq - first_seq + 1 from memoryos.page order by first_seq")]


class TestSet:
    def test_a_users_own_goes_before_the_tenants_and_the_newest_counts(self, stack: Stack) -> None:
        """Versions count on for each of the two, and older ones stay readable."""
        assert _in_force(stack, "maya") is None
        assert [_set(stack, PRESETS["mem0"]), _set(stack, PRESETS["a_mem"])] == [1, 2]
        assert _set(stack, SMALL, user_id="maya") == 1

        assert _in_force(stack, "maya") == SMALL
        assert _in_force(stack, "jun") == _in_force(stack, None) == PRESETS["a_mem"]
        with stack.app.transaction(stack.tenant_id) as connection:
            assert [each.policy for each in list_versions(connection, stack.tenant_id)] == [
                PRESETS["mem0"], PRESETS["a_mem"],
            ]  # fmt: skip

    def test_scopes_say_what_they_act_under(self, stack: Stack) -> None:
        """Those there are are told, with an event; those that come later begin with it."""
        create_scope(stack, "maya")
        _set(stack, PRESETS["seed000"], preset="seed000")
        record(stack, "hello", user_id="jun")

        named = rows(stack, "select user_id, preset, preset_version from memoryos.scope order by 1")
        assert named == [("jun", "seed000", 1), ("maya", "seed000", 1)]
        assert rows(stack, "select amount from memoryos.event where kind = 'policy_changed'") == [(1.0,)]

    def test_no_tenant_sees_anothers(self, stack: Stack) -> None:
        """A policy acts in its own tenant."""
        _set(stack, SMALL)
        with stack.app.transaction(create_scope(stack)) as connection:  # an id that is no tenant
            assert find_policy(connection, stack.tenant_id) is None


class TestRecord:
    def test_the_first_turn_of_a_new_user_counts_by_their_policy(self, stack: Stack) -> None:
        """The policy is read in the statement that opens the conversation, also when its scope is new."""
        _set(stack, SMALL, user_id="maya")
        record(stack, *numbered(3))
        record(stack, *numbered(3), user_id="jun")
        Walk(stack).run(advance, WorkKind.ADVANCE)

        assert _pages(stack) == [2]

    def test_a_change_acts_on_the_next_turn(self, stack: Stack) -> None:
        """Nothing that was remembered of an older version is used again."""
        record(stack, *numbered(3))
        assert Walk(stack).run(advance, WorkKind.ADVANCE) == 0
        _set(stack, SMALL)
        record(stack, "one more", first=4)
        Walk(stack).run(advance, WorkKind.ADVANCE)
        _set(stack, replace(SMALL, hot_capacity_turns=50))
        record(stack, *numbered(9, first=5), first=5)
        Walk(stack).run(advance, WorkKind.ADVANCE)

        assert _pages(stack) == [2]

    def test_a_policy_costs_recording_no_statement(self, stack: Stack) -> None:
        """One statement reads a version the first time a process meets it, and none after."""

        def say(n: int) -> int:
            return count_statements(stack.app, lambda: record(stack, f"turn {n}", first=n))

        say(1)
        without = say(2)
        _set(stack, DEFAULT)
        say(3)

        assert say(4) == without


class TestSweep:
    @pytest.mark.parametrize(("own_minutes", "sealed"), [(1.0, [1]), (600.0, [])])
    def test_idle_is_what_the_policy_of_the_scope_says(
        self, stack: Stack, own_minutes: float, sealed: list[int]
    ) -> None:
        """An idle setting of a minute, or of ten hours, is the one that acts."""
        _set(stack, Policy(idle_flush_minutes=own_minutes), user_id="maya")
        set_clock(stack, START)
        record(stack, "short")
        set_clock(stack, START + timedelta(minutes=31))
        owe_due(stack.ledger_database, name="flush")
        Walk(stack).run(advance, WorkKind.ADVANCE)

        assert _pages(stack) == sealed


class TestRepair:
    def test_what_a_policy_keeps_in_hot_is_no_damage(self, stack: Stack) -> None:
        """Twenty turns under a capacity of fifty are as they should be; without the policy they would be owed."""
        _set(stack, Policy(hot_capacity_turns=50), user_id="maya")
        record(stack, *numbered(20))
        assert repair_tenant(stack.owner, stack.tenant_id) == []
        record(stack, *numbered(20), user_id="jun")
        with stack.ledger_database.across_tenants() as connection:
            connection.execute(text("update memoryos.work set state = 'done' where kind = 'advance'"))

        assert len(repair_tenant(stack.owner, stack.tenant_id)) == 1


class TestBurst:
    def test_no_turn_is_ever_between_the_tiers(self, stack: Stack) -> None:
        """Bursts of 10, 8 and 30 turns with sealing far behind; each turn is hot or on a page, always."""
        _set(stack, Policy(hot_capacity_turns=7), user_id="maya")
        sent = 0
        for burst in (10, 8, 30):
            record(stack, *numbered(burst, first=sent + 1), first=sent + 1)
            sent += burst
            query = "select tier, count(*) from memory_v1.turns where tier = 'hot' or page_id is not null group by tier"
            assert sum(count for _, count in rows(stack, query)) == sent
        Walk(stack).run(advance, WorkKind.ADVANCE)
        tiers = dict(rows(stack, "select tier, count(*) from memory_v1.turns group by tier"))

        assert tiers == {"warm": 45, "hot": 3}
