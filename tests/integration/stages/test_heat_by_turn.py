"""Page heat whose tick is a turn of the user: the golden vectors, from recording to a page that is cold."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.heat import half_life_ticks, heat_on_tick
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.forget import forget
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import START, create_scope, record, rows, set_clock
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about

BY_TURN = Policy(heat="ema_tick", tick="turn", distill_when="cooled", min_warm_age_hours=0.0)
ACCESS = text("""
    insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause, at)
    values (:tenant_id, :retrieval_id, 'page', :page, :scope_id, 'injected', memoryos.now())
""")
HEATS = "select page_id, heat from memory_v1.pages"
CAUSES = "select distill_cause from memoryos.page order by sealed_at, first_seq"


class Talk:
    """A user who goes on talking in a conversation that stays hot, while pages of another one are read."""

    def __init__(self, stack: Stack, policy: Policy = BY_TURN) -> None:
        self.walk = Walk(stack)
        self.stack = stack
        self.follow(policy)
        self.scope = create_scope(stack)
        self.said = 0
        set_clock(stack, START)

    def follow(self, policy: Policy) -> None:
        """Put a policy in force."""
        put_policy(self.stack.app, self.stack.tenant_id, user_id=None, preset="default", policy=policy)

    def say(self, turns: int = 1) -> None:
        """The user speaks, a minute after the last time."""
        for _ in range(turns):
            self.said += 1
            set_clock(self.stack, START + timedelta(minutes=self.said))
            record(self.stack, f"message {self.said}", conversation="talk", first=self.said)

    def read(self, *pages: UUID) -> None:
        """Pages are shown, half a minute after the user spoke."""
        set_clock(self.stack, START + timedelta(minutes=self.said, seconds=30))
        values = [
            {"tenant_id": self.stack.tenant_id, "retrieval_id": mint_id(), "page": page, "scope_id": self.scope}
            for page in pages
        ]
        if values:
            with self.stack.app.transaction(self.stack.tenant_id) as connection:
                connection.execute(ACCESS, values)

    def apply(self) -> dict[UUID, float]:
        """Run heat work; return the heat of every page as the read model shows it."""
        apply_heat(self.walk.parts, self.walk.claim(WorkKind.HEAT, str(self.scope)))
        return {row[0]: row[1] for row in rows(self.stack, HEATS)}


def _stepwise(start: float, hits: Sequence[bool]) -> float:
    for hit in hits:
        start = heat_on_tick(start, alpha=0.9, accessed=hit)
    return start


class TestHeatByTurn:
    def test_twelve_turns_of_the_user_make_a_page_cold(self, stack: Stack) -> None:
        """Alpha .9 from 1.0: halved between the 6th and the 7th turn, first below .3 at the 12th, with .2824."""
        talk = Talk(stack)
        (page,) = talk.walk.warm(*about("tennis"))
        talk.say(6)
        halved_at = half_life_ticks(0.9)
        assert talk.apply()[page] > 0.5
        talk.say(1)
        assert talk.apply()[page] < 0.5
        assert 6 < halved_at < 7
        talk.say(4)
        talk.apply()
        assert rows(stack, CAUSES) == [(None,)]
        talk.say(1)

        assert talk.apply()[page] == pytest.approx(0.2824, abs=5e-5)
        assert rows(stack, CAUSES) == [("cooled",)]

    def test_nine_turns_with_a_reading_each_make_a_page_hot(self, stack: Stack) -> None:
        """From 0, read after every turn: .5695 at the 8th, .6126 at the 9th, the first of .6 or more."""
        talk = Talk(stack)
        (page,) = talk.walk.warm(*about("tennis"))
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.page set heat = 0, cools_at_tick = null"))
        for _ in range(8):
            talk.say()
            talk.read(page)
        assert talk.apply()[page] == pytest.approx(0.5695, abs=5e-5)
        talk.say()
        talk.read(page)

        assert talk.apply()[page] == pytest.approx(0.6126, abs=5e-5)

    def test_lazy_heat_is_stepwise_heat(self, stack: Stack) -> None:
        """Applied in one run or two, read once or thrice in a turn: what a step at every turn gives, to 1e-12."""
        talk = Talk(stack)
        often, seldom = talk.walk.warm(*about("tennis", "chess"))
        hits = [True, False, False, True, True, False, True, False, False, False]
        for number, hit in enumerate(hits):
            talk.say()
            talk.read(*[often, often, often, seldom] if hit else [])
            if number == 4:
                talk.apply()
        heats = talk.apply()

        assert heats[often] == pytest.approx(_stepwise(1.0, hits), abs=1e-12)
        assert heats[seldom] == pytest.approx(_stepwise(1.0, hits), abs=1e-12)

    def test_only_what_the_user_says_is_a_tick(self, stack: Stack) -> None:
        """Neither a year, nor the assistant, nor a turn that is sent again makes a page colder."""
        talk = Talk(stack)
        (page,) = talk.walk.warm(*about("tennis"))
        talk.say(2)
        record(stack, "message 2", "an answer", conversation="talk", first=2)
        set_clock(stack, START + timedelta(days=365))

        assert talk.apply()[page] == pytest.approx(0.81, abs=1e-12)

    def test_a_page_that_comes_has_the_others_looked_at(self, stack: Stack) -> None:
        """Nobody has to read anything: assigning a page owes heat work, and what the user said by then counts."""
        talk = Talk(stack)
        talk.walk.warm(*about("tennis"))
        talk.walk.run(apply_heat, WorkKind.HEAT)
        talk.say(12)
        talk.walk.warm(*about("chess"), conversation="c2", start=START + timedelta(hours=1))
        owe_due(stack.ledger_database, name="heat")
        talk.walk.run(apply_heat, WorkKind.HEAT)

        assert rows(stack, CAUSES) == [("cooled",), (None,)]

    def test_what_was_said_under_another_policy_is_no_tick(self, stack: Stack) -> None:
        """Counting begins when turns become ticks: a page is not cold at once because much had been said before."""
        talk = Talk(stack, policy=Policy())
        (page,) = talk.walk.warm(*about("tennis"))
        talk.say(12)
        talk.follow(BY_TURN)
        assert talk.apply()[page] == 1.0
        talk.walk.run(forget, WorkKind.FORGET)
        talk.say(2)
        talk.read(page)
        talk.apply()
        talk.say(1)

        assert talk.apply()[page] == pytest.approx(0.9, abs=1e-3)
