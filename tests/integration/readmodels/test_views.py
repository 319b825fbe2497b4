"""The views say what the rules say, and the app reads them by index."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.forgetting import weight
from memoryos_pipeline.domain.heat import Heat, heat_after, recency, segment_heat
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.work import QUEUE_OF_KIND
from memoryos_pipeline.readmodels.views import LISTINGS, Selection, _behind, _statement, list_rows
from memoryos_pipeline.store.clock import freeze_clock, read_now
from memoryos_pipeline.store.found import read_traits
from memoryos_pipeline.store.search import ScopeKey
from tests.conftest import Stack
from tests.integration.readmodels.past import Past, live_a_past


@pytest.fixture(autouse=True)
def past(stack: Stack) -> Past:
    """One user's memory."""
    return live_a_past(stack.app, stack.tenant_id)


def _rows(stack: Stack, query: str, **values: Any) -> list[dict[str, Any]]:
    with stack.app.transaction(stack.tenant_id) as connection:
        return [dict(row) for row in connection.execute(text(query), values).mappings()]


def _freeze_later(stack: Stack, days: float) -> None:
    with stack.owner.across_tenants() as connection:
        freeze_clock(connection, read_now(connection) + timedelta(days=days))


class TestClosedForms:
    def test_heat_is_todays(self, stack: Stack) -> None:
        """Page heat is the EMA closed form at the moment of reading; nothing is stored anew."""
        _freeze_later(stack, 10)
        (page,) = _rows(stack, "select heat, memoryos.now() as now from memory_v1.pages")
        (stored,) = _rows(stack, "select heat, heat_at from memoryos.page")
        expected = heat_after(
            Heat(stored["heat"], stored["heat_at"]), page["now"], half_life_days=DEFAULT.heat_half_life_days
        )

        assert page["heat"] == pytest.approx(expected, abs=1e-9)
        assert 0.3 < page["heat"] < 0.4

    def test_weight_is_todays(self, stack: Stack) -> None:
        """Knowledge weighs what the forgetting curve says right now."""
        _freeze_later(stack, 50)
        for row in _rows(stack, "select *, memoryos.now() as now from memory_v1.knowledge"):
            expected = weight(row["now"], row["last_reinforced_at"], strength_days=row["strength_days"])
            assert row["weight"] == pytest.approx(expected, abs=1e-9)
            assert row["weight"] == pytest.approx(0.3679, abs=1e-3)

    def test_segment_heat_is_todays(self, stack: Stack) -> None:
        """Visits, pages and a recency that fades."""
        _freeze_later(stack, 1)
        (row,) = _rows(stack, "select *, memoryos.now() as now from memory_v1.segments")
        fading = recency(row["now"] - row["last_visit_at"], tau_hours=DEFAULT.segment_recency_tau_hours)

        assert row["heat"] == pytest.approx(
            segment_heat(n_visit=row["visits"], l_interaction=row["interactions"], recency_now=fading), abs=1e-9
        )

    def test_a_policy_of_the_user_counts(self, stack: Stack) -> None:
        """A half-life set for a user is the one their pages cool by."""
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.policy set settings = '{\"heat_half_life_days\": 1}'"))
        _freeze_later(stack, 10)

        assert _rows(stack, "select heat from memory_v1.pages")[0]["heat"] == pytest.approx(2**-10, rel=0.01)

    def test_a_clock_that_goes_back_heats_nothing(self, stack: Stack) -> None:
        """Heat never exceeds what was stored."""
        _freeze_later(stack, -10)

        assert _rows(stack, "select heat from memory_v1.pages")[0]["heat"] == 1.0


class TestViews:
    def test_hot_turns_are_the_tail_and_the_pins(self, stack: Stack) -> None:
        """What is shown verbatim: unsealed turns, and the turns of pinned pages."""
        before = _rows(stack, "select seq, why from memory_v1.hot_turns order by seq")
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.page set pinned_at = memoryos.now()"))
        after = _rows(stack, "select seq, why from memory_v1.hot_turns order by seq")

        assert [(row["seq"], row["why"]) for row in before] == [(6, "tail"), (7, "tail")]
        assert [row["why"] for row in after] == ["pinned"] * 5 + ["tail"] * 2

    @pytest.mark.parametrize(
        ("change", "state", "waits_for"),
        [
            ("state = 'ready'", "ready", "the relay"),
            ("state = 'ready', enqueued_at = now()", "ready", "a worker of the queue merge"),
            (
                "state = 'ready', run_after = clock_timestamp() + interval '1 hour', last_error_class = 'transient'",
                "waiting",
                "its next try after transient, in 3600 s",
            ),
            (
                "state = 'leased', lease_until = clock_timestamp() + interval '1 hour', owner = 'w1'",
                "leased",
                "the worker that is doing it: w1",
            ),
            (
                "state = 'leased', lease_until = clock_timestamp() - interval '1 hour'",
                "leased",
                "another worker: the lease ran out",
            ),
            (
                "state = 'dead', attempts = 5, last_error_class = 'permanent'",
                "dead",
                "a person: permanent, given up after 5 attempts",
            ),
            ("state = 'done'", "done", "nothing: it is done"),
        ],
    )
    def test_work_says_who_has_to_move(self, stack: Stack, change: str, state: str, waits_for: str) -> None:
        """What is owed is told in words."""
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text(f"update memoryos.work set {change} where kind = 'merge'"))

        (row,) = _rows(stack, "select state, waits_for from memory_v1.work where kind = 'merge'")
        assert (row["state"], row["waits_for"]) == (state, waits_for)

    def test_queues_are_those_of_the_code(self, stack: Stack) -> None:
        """SQL and Python agree on which queue delivers what."""
        for kind, queue in QUEUE_OF_KIND.items():
            assert _rows(stack, "select memoryos.queue_of(:kind) as queue", kind=str(kind)) == [{"queue": queue}]

    def test_a_link_to_something_forgotten_is_not_shown(self, stack: Stack, past: Past) -> None:
        """Forgotten text does not come back through a neighbour."""
        assert len(_rows(stack, "select 1 from memory_v1.links")) == 1
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(
                text(
                    "update memoryos.knowledge set status = 'forgotten', forgotten_at = now()"
                    " where knowledge_id = :other"
                ),
                past.values(),
            )

        assert _rows(stack, "select 1 from memory_v1.links") == []

    def test_a_decision_repeats_nothing_that_is_forgotten(self, stack: Stack, past: Past) -> None:
        """The ledger says that something was decided; what was said is left to the history of knowledge."""
        query = "select old_content, new_content, old_knowledge_id, reason, evidence from memory_v1.verdicts"
        (before,) = _rows(stack, query)
        with stack.app.transaction(stack.tenant_id) as connection:
            gone = "update memoryos.knowledge set status = 'forgotten', forgotten_at = now() where knowledge_id = :old"
            connection.execute(text(gone), past.values())
        (after,) = _rows(stack, query)

        assert (before["old_content"], before["new_content"]) == ("canary", "canary")
        assert after == {**before, "old_content": None}

    @pytest.mark.parametrize(
        "change",
        [
            "status = 'forgotten', forgotten_at = now()",
            "status = 'superseded', superseded_by = :other, retired_at = now()",
            "status = 'closed', retired_at = now()",
        ],
    )
    def test_a_trait_stands_on_live_knowledge(self, stack: Stack, past: Past, change: str) -> None:
        """Evidence that is forgotten or replaced supports nothing; the view says what recall reads."""
        for shown, status in ((1, ""), (0, f"update memoryos.knowledge set {change} where knowledge_id = :new")):
            with stack.app.transaction(stack.tenant_id) as connection:
                if status:
                    connection.execute(text(status), past.values())
                profile = read_traits(connection, ScopeKey(stack.tenant_id, past.scope))
            rows = _rows(stack, "select actor, dimension, level from memory_v1.profile")
            assert [(row["actor"], row["dimension"], row["level"]) for row in rows] == [
                (trait.actor, trait.dimension, trait.level) for trait in profile
            ]
            assert len(rows) == shown


class TestPlans:
    @pytest.mark.parametrize(
        ("listing", "index"),
        [("turns", "turn_by_scope"), ("pages", "page_by_scope"), ("knowledge", "knowledge_by_scope")],
    )
    def test_a_later_page_is_a_range_of_an_index(self, stack: Stack, past: Past, listing: str, index: str) -> None:
        """Under row level security, as the app role, going on behind a cursor reads an index from there."""
        with stack.app.transaction(stack.tenant_id) as connection:
            selection = Selection(stack.tenant_id, user_id="maya", agent_id="companion")
            cursor = list_rows(connection, LISTINGS[listing], selection, limit=1).cursor
            statement = _statement(LISTINGS[listing], selection, [past.scope]).limit(10)
            behind = _behind(LISTINGS[listing], cursor or _cursor_of(listing, connection, selection))
            plan = _plan(connection, statement.where(behind))

        (condition,) = [line for at, line in enumerate(plan) if f" {index} " in plan[at - 1] and "Index Cond" in line]
        assert "scope_id" in condition
        assert "ROW(" in condition

    def test_the_feed_is_a_range_of_an_index(self, stack: Stack) -> None:
        """The next events are found by position, not by reading the log from its start."""
        query = text("""
            select * from memory_v1.events where tenant_id = :tenant and (position, event_id) > (cast('5' as xid8), 3)
             order by position, event_id limit 10
        """)
        with stack.app.transaction(stack.tenant_id) as connection:
            plan = _plan(connection, query, tenant=stack.tenant_id)

        (condition,) = [line for at, line in enumerate(plan) if "event_by_position" in plan[at - 1] and "Cond" in line]
        assert "ROW(" in condition


def _cursor_of(listing: str, connection: Any, selection: Selection) -> str:
    from memoryos_pipeline.readmodels.cursors import write_cursor

    row = connection.execute(_statement(LISTINGS[listing], selection, None).limit(1)).mappings().one()
    return write_cursor(listing, row, list(LISTINGS[listing].order))


def _plan(connection: Any, statement: Any, **values: UUID) -> list[str]:
    for setting in ("enable_seqscan", "enable_bitmapscan"):
        connection.exec_driver_sql(f"set local {setting} = off")
    compiled = statement.compile(connection.engine)
    parameters = {**compiled.params, **values}
    explained = f"explain (costs off) {compiled}"
    return list(connection.exec_driver_sql(explained, parameters).scalars())
