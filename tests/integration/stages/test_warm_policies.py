"""Warm memory under the policies of the other designs: heat by retrievals, and room that is made."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import START, create_scope, rows, set_clock
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about

ACCESS = text("""
    insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause, at)
    values (:tenant_id, :retrieval_id, 'page', :page, :scope_id, 'injected', memoryos.now())
""")
CAUSES = "select distill_cause from memoryos.page order by sealed_at, first_seq"
TIERS = "select tier from memoryos.page order by sealed_at, first_seq"


def _retrieve(walk: Walk, page: UUID, *, times: int) -> None:
    """Give a page to a reader so many times, and apply it."""
    scope = create_scope(walk.stack)
    values = [
        {"tenant_id": walk.stack.tenant_id, "retrieval_id": mint_id(), "page": page, "scope_id": scope}
        for _ in range(times)
    ]
    with walk.stack.app.transaction(walk.stack.tenant_id) as connection:
        connection.execute(ACCESS, values)
    owe_due(walk.stack.ledger_database, name="heat")
    walk.run(apply_heat, WorkKind.HEAT)


class TestHeatByTick:
    def test_twelve_retrievals_of_others_make_a_page_cold(self, stack: Stack) -> None:
        """Seed 000: a page that is not hit falls below 0.3 at the twelfth retrieval, however little time passes."""
        set_clock(stack, START)
        walk = Walk(stack, policy=PRESETS["seed000"])
        first, _ = walk.warm(*about("tennis", "chess"))
        _retrieve(walk, first, times=11)
        assert rows(stack, CAUSES) == [(None,), (None,)]
        _retrieve(walk, first, times=1)

        assert rows(stack, CAUSES) == [(None,), ("cooled",)]
        assert rows(stack, "select heat_ticks from memoryos.scope") == [(12,)]
        assert rows(stack, "select heat from memoryos.page order by first_seq") == [(pytest.approx(1.0),), (1.0,)]

    def test_time_alone_cools_nothing(self, stack: Stack) -> None:
        """A year without a retrieval is no tick."""
        set_clock(stack, START)
        walk = Walk(stack, policy=PRESETS["seed000"])
        walk.warm(*about("tennis"))
        set_clock(stack, START + timedelta(days=365))
        owe_due(stack.ledger_database, name="heat")

        assert walk.run(apply_heat, WorkKind.HEAT) == 0

    def test_one_applied_run_equals_many(self, stack: Stack) -> None:
        """However many accesses one run applies, heat is what one run each gives."""
        set_clock(stack, START)
        walk = Walk(stack, policy=PRESETS["seed000"])
        first, second = walk.warm(*about("tennis", "chess"))
        _retrieve(walk, first, times=3)
        for _ in range(3):
            _retrieve(walk, second, times=1)

        ((tick_one, one), (tick_two, two)) = rows(stack, "select heat_tick, heat from memoryos.page order by first_seq")
        assert (tick_one, tick_two) == (3, 6)
        assert two == pytest.approx(1 - 0.9**3 * (1 - 0.9**3), abs=1e-12)
        assert one == pytest.approx(1.0, abs=1e-12)


class TestMakeRoom:
    def test_a_page_is_distilled_before_it_gives_way(self, stack: Stack) -> None:
        """More than two warm pages: the oldest is handed over as evicted, and archived with its distillation."""
        set_clock(stack, START)
        walk = Walk(stack, policy=Policy(evict="oldest", warm_capacity_pages=2, evict_min_age_hours=0))
        for hours, topic in enumerate(("tennis", "chess", "judo")):
            set_clock(stack, START + timedelta(hours=hours))
            walk.warm(*about(topic), conversation=topic)
        walk.run(apply_heat, WorkKind.HEAT)
        assert rows(stack, CAUSES) == [("evicted",), (None,), (None,)]
        assert rows(stack, TIERS) == [("warm",)] * 3
        walk.run(distill_page, WorkKind.DISTILL)

        assert rows(stack, TIERS) == [("archived",), ("warm",), ("warm",)]
        assert rows(stack, "select count(*) from memoryos.event where kind = 'page_evicted'") == [(1,)]

    def test_young_pages_are_not_evicted(self, stack: Stack) -> None:
        """Whoever came in a moment ago stays, however many there are."""
        set_clock(stack, START)
        walk = Walk(stack, policy=Policy(evict="lfu", warm_capacity_pages=1))
        walk.warm(*about("tennis", "chess"))
        walk.run(apply_heat, WorkKind.HEAT)

        assert rows(stack, CAUSES) == [(None,), (None,)]
