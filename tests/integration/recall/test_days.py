"""The days so far in a context: where the policy keeps rollups, dated and with their pages, within their share."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.packing import CAPS, TITLES, estimate_tokens
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.recall.context import Context, ContextItem, build_context
from memoryos_pipeline.recall.days import day_items
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.forget import forget
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.rollups import Rollup, refresh_rollups
from tests.builders import START, create_scope, rows
from tests.builders_recall import ask
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about

LEAVE = text("""
    insert into memoryos.turn_left (tenant_id, conversation_id, seq)
    select tenant_id, conversation_id, first_seq from memoryos.page where page_id = :page
""")
FORGOTTEN = (
    text("""
        insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, kind, content, content_sha256,
            lang, actor, importance, strength_days, turn_at, valid_from, extracted_by, status, forgotten_at)
        select tenant_id, :id, scope_id, :id, 'fact', 'forgotten', 'x', 'en', 'Maya', 0.5, 50, last_turn_at,
               last_turn_at, 'test', 'forgotten', memoryos.now()
          from memoryos.page where page_id = :page
    """),
    text("""
        insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
        select tenant_id, :id, conversation_id, first_seq, page_id from memoryos.page where page_id = :page
    """),
    text("""
        update memoryos.page set extracted_at = memoryos.now(), extracted_by = 'test', knowledge_count = 1,
               cools_at = memoryos.now()
         where page_id = :page
    """),
)
RETURN = text("delete from memoryos.turn_left")


def _lived(stack: Stack, policy: Policy, *topics: str) -> Walk:
    """A memory of one page a day."""
    put_policy(stack.app, stack.tenant_id, user_id=None, preset="default", policy=policy)
    walk = Walk(stack)
    for day, topic in enumerate(topics):
        walk.warm(*about(topic), conversation=topic, start=START + timedelta(days=day))
    return walk


def _context(walk: Walk, **options: Any) -> Context:
    given = {"token_budget": 800, **options}
    return build_context(walk.parts, walk.stack.tenant_id, ask("anything at all"), **given)


def _days(context: Context) -> list[ContextItem]:
    return [item for item in context.items if item.section == "rollups"]


class TestDays:
    def test_the_whole_and_the_newest_day_stand_apart(self, stack: Stack) -> None:
        """Each line has its days and its pages; in a small budget the newest day is the one that is shown."""
        walk = _lived(stack, Policy(rollups="daily"), "tennis", "chess", "judo")
        context = _context(walk)
        whole, newest = _days(context)
        pages = dict(rows(stack, "select period, page_ids from memory_v1.rollups"))

        assert TITLES["rollups"] in context.text
        assert (whole.ref, newest.ref) == ("all", "2026-03-03")
        assert whole.line.startswith("[2026-03-01 to 2026-03-03 ")
        assert newest.line.startswith(f"[2026-03-03 {pages['2026-03-03'][0].hex[:8]}] ")
        assert "judo" in newest.line
        assert [set(each.page_ids) for each in (whole, newest)] == [set(pages["all"]), set(pages["2026-03-03"])]
        assert [item.ref for item in _days(_context(walk, token_budget=3000))] == [
            "all", "2026-03-01", "2026-03-02", "2026-03-03",
        ]  # fmt: skip

    def test_only_a_policy_with_rollups_shows_them(self, stack: Stack) -> None:
        """MemoryBank has them, the default has none; a policy that gives them up shows none that are left."""
        assert PRESETS["memorybank"].rollups == "daily"
        walk = _lived(stack, Policy(rollups="daily"), "tennis")
        assert len(_days(_context(walk))) == 2
        put_policy(stack.app, stack.tenant_id, user_id=None, preset="default", policy=Policy())

        assert _days(_context(walk)) == []

    def test_what_left_recall_is_told_of_no_more(self, stack: Stack) -> None:
        """A day of which nothing is left goes, the whole is told without it; what comes back is told again."""
        walk = _lived(stack, Policy(rollups="daily"), "tennis", "chess")
        scope = create_scope(stack)
        ((page,),) = rows(stack, "select page_id from memoryos.page order by first_turn_at limit 1")
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(LEAVE, {"page": page})
        forget(walk.parts, walk.claim(WorkKind.FORGET, str(scope)))
        context = _context(walk, token_budget=3000)
        assert [item.ref for item in _days(context)] == ["all", "2026-03-02"]
        assert not any("tennis" in item.line for item in _days(context))
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(RETURN)
            refresh_rollups(connection, stack.tenant_id, scope, page_ids=[page])

        assert [item.ref for item in _days(_context(walk, token_budget=3000))] == ["all", "2026-03-01", "2026-03-02"]

    def test_a_page_that_is_archived_last_takes_its_day_along(self, stack: Stack) -> None:
        """What was known from it had been forgotten: archived, its turns leave recall, and its day goes."""
        walk = _lived(stack, Policy(rollups="daily"), "tennis", "chess")
        ((page,),) = rows(stack, "select page_id from memoryos.page order by first_turn_at limit 1")
        with stack.app.transaction(stack.tenant_id) as connection:
            values = {"page": page, "id": mint_id()}
            for statement in FORGOTTEN:
                connection.execute(statement, values)
        apply_heat(walk.parts, walk.claim(WorkKind.HEAT, str(create_scope(stack))))

        assert rows(stack, "select tier from memoryos.page order by first_turn_at") == [("archived",), ("warm",)]
        assert rows(stack, "select period from memory_v1.rollups order by period") == [("2026-03-02",), ("all",)]

    def test_nothing_at_all_may_be_left(self, stack: Stack) -> None:
        """When every page has left, there is no whole either."""
        walk = _lived(stack, Policy(rollups="daily"), "tennis")
        ((page,),) = rows(stack, "select page_id from memoryos.page")
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(LEAVE, {"page": page})
        forget(walk.parts, walk.claim(WorkKind.FORGET, str(create_scope(stack))))

        assert rows(stack, "select period from memory_v1.rollups") == []


class TestDayItems:
    @pytest.mark.parametrize(
        "said", ["We played tennis all day. ", "一日中テニスをした。", "종일 테니스를 쳤다. ", "打了一整天网球。"]
    )
    @pytest.mark.parametrize("budget", [50, 200, 800, 4000])
    def test_the_section_keeps_to_its_share(self, said: str, budget: int) -> None:
        """However long the summaries are, in any language, the lines fit the share and something of each is shown."""
        day = START.date()
        found = [Rollup("all", said * 60, (), day, day + timedelta(days=8))]
        found += [Rollup(str(day + timedelta(days=n)), said * 30, (), day, day) for n in range(8, -1, -1)]
        items = day_items(found, budget_tokens=budget)
        spent = estimate_tokens(TITLES["rollups"]) + 1 + sum(estimate_tokens(item.line) + 1 for item in items)

        assert not items or spent <= budget * CAPS["rollups"]
        assert (len(items) > 0) == (budget >= 200)
        assert all(item.line.startswith("[2026-03-01") for item in items[:1])
