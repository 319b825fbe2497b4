"""Applying heat on a real Postgres, with the clock held by its owner."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import FencedError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.lifecycle import PageFacts, PageState, move, page_state
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages import apply_heat as heat_module
from memoryos_pipeline.stages.apply_heat import apply_heat
from memoryos_pipeline.stages.assign_segments import assign_segments
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.pages import lock_conversation
from memoryos_pipeline.store.postings import put_postings
from memoryos_pipeline.store.recallable import find_recallable_turns
from memoryos_pipeline.store.segments import lock_scope
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import START, claim_due, count_statements, create_scope, rows, set_clock, wait_for_a_waiter
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about

DAY = timedelta(days=1)
COOLING = DAY * 12.1588
HEATS = "select heat, heat_at, cools_at, pinned_at from memoryos.page order by conversation_id, first_seq"
EVENTS = "select kind, subject_id from memoryos.event where kind = any(:kinds) order by event_id"
SEGMENT = "select n_visit, l_interaction, round(heat_linear::numeric, 4)::float8 from memoryos.segment order by theme"
ACCESS = text("""
    insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause, at)
    values (:tenant_id, :retrieval_id, :kind, :owner_id, :scope_id, :cause, :at)
""")
ADD_KNOWLEDGE = """
    insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, kind, content, content_sha256, lang,
        actor, importance, strength_days, turn_at, valid_from, extracted_by, status, forgotten_at, pinned_at)
    values (:tenant_id, :id, :scope_id, :id, 'fact', :content, decode(md5(:content), 'hex'), 'en', 'Maya',
        :importance, 50, memoryos.now(), memoryos.now(), 'test', :status,
        case when :status = 'forgotten' then memoryos.now() end, case when :pinned then memoryos.now() end)
    returning knowledge_id
"""
CITE = """
    insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
    select tenant_id, :knowledge, conversation_id, :seq, page_id from memoryos.page where page_id = :page returning seq
"""
EXTRACT = """
    update memoryos.page set extracted_at = memoryos.now(), extracted_by = 'test', knowledge_count = 1 returning page_id
"""


def _access(
    stack: Stack, kind: str, owners: Sequence[UUID], at: datetime, *, cause: str = "injected", times: int = 1
) -> None:
    values = [
        {
            "tenant_id": stack.tenant_id,
            "retrieval_id": mint_id(),
            "kind": kind,
            "owner_id": owner,
            "scope_id": create_scope(stack),
            "cause": cause,
            "at": at + timedelta(seconds=n),
        }
        for owner in owners
        for n in range(times)
    ]
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(ACCESS, values)


def _apply(walk: Walk) -> None:
    """Sweep and apply, as the scheduler and a worker would."""
    owe_due(walk.stack.ledger_database, name="heat", policy=walk.policy)
    walk.run(apply_heat, WorkKind.HEAT)


def _knowledge(
    stack: Stack, content: str, *, importance: float = 0.5, pinned: bool = False, status: str = "active"
) -> UUID:
    values = {"tenant_id": stack.tenant_id, "id": mint_id(), "scope_id": create_scope(stack)}
    query = {"content": content, "importance": importance, "pinned": pinned, "status": status}
    ((knowledge,),) = rows(stack, ADD_KNOWLEDGE, **values, **query)
    return knowledge  # type: ignore[no-any-return]


def _events(stack: Stack, *kinds: str) -> list[tuple[Any, ...]]:
    return rows(stack, EVENTS, kinds=list(kinds))


@pytest.fixture
def walk(stack: Stack) -> Walk:
    """A walk that starts at a known moment."""
    set_clock(stack, START)
    return Walk(stack)


class TestAccess:
    @pytest.mark.parametrize("kind", ["page", "turn"])
    def test_what_a_reader_was_given_warms_its_page(self, stack: Stack, walk: Walk, kind: str) -> None:
        """A page or one of its turns, a week later: 0.5 decayed, plus a tenth of what is missing, cools later."""
        page, other = walk.warm(*about("tennis", "chess"))
        ((turn,),) = rows(stack, "select turn_id from memoryos.turn where seq = 3")
        later = START + 7 * DAY
        set_clock(stack, later)
        _access(stack, kind, [page if kind == "page" else turn], later)
        _apply(walk)
        warmed, untouched = rows(stack, HEATS)

        assert (warmed[0], warmed[1]) == (pytest.approx(0.55), later)
        assert (warmed[2] - later) / DAY == pytest.approx(7 * 0.87447, abs=1e-3)
        assert untouched[:2] == (1.0, START)
        assert rows(stack, "select 1 from memoryos.access_event where applied_at is null") == []
        assert other != page

    def test_a_hit_that_nobody_was_given_warms_nothing(self, stack: Stack, walk: Walk) -> None:
        """`retrieved` is only a hit; it is noted as applied and has no effect."""
        (page,) = walk.warm(*about("tennis"))
        _access(stack, "page", [page], START + DAY, cause="retrieved")
        _apply(walk)

        assert rows(stack, HEATS)[0][:2] == (1.0, START)
        assert rows(stack, "select 1 from memoryos.access_event where applied_at is null") == []

    def test_two_hundred_accesses_in_an_hour_count_once(self, stack: Stack, walk: Walk) -> None:
        """Repeating recall does not heat: one access an hour counts, in one run or in many."""
        (page,) = walk.warm(*about("tennis"))
        later = START + 7 * DAY
        set_clock(stack, later)
        for _ in range(2):
            _access(stack, "page", [page], later, times=100)
            _apply(walk)

        assert rows(stack, HEATS)[0][0] == pytest.approx(0.55)
        assert rows(stack, SEGMENT)[0][0] == 1

    def test_accesses_are_applied_in_runs_until_none_is_left(
        self, stack: Stack, walk: Walk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run that took its full share owes the next one."""
        monkeypatch.setattr(heat_module, "ACCESSES_PER_RUN", 4)
        pages = walk.warm(*about("tennis", "chess"))
        _access(stack, "page", pages, START + DAY, times=5)
        owe_due(stack.ledger_database, name="heat")
        runs = 0
        while walk.run(apply_heat, WorkKind.HEAT):
            runs += 1

        assert runs == 3
        assert rows(stack, "select 1 from memoryos.access_event where applied_at is null") == []

    def test_the_number_of_statements_does_not_grow(self, stack: Stack, walk: Walk) -> None:
        """Twenty accessed pages cost the statements of one."""
        pages = walk.warm(*about(*(f"topic{n}" for n in range(21))))
        counts = []
        for n, touched in enumerate((pages[:1], pages[1:])):
            _access(stack, "page", touched, START + (n + 1) * DAY)
            owe_due(stack.ledger_database, name="heat")
            (lease,) = claim_due(stack, WorkKind.HEAT)
            counts.append(count_statements(stack.app, partial(apply_heat, walk.parts, lease)))

        assert counts[0] == counts[1]


class TestPins:
    def test_a_page_is_pinned_high_and_let_go_low(self, stack: Stack, walk: Walk) -> None:
        """Read at heat 0.8 or more it is pinned, stays so down to 0.6, and the next run below lets it go."""
        (page,) = walk.warm(*about("tennis"))
        for day, pinned in ((1, True), (5, True), (7, False)):
            now = START + day * DAY
            set_clock(stack, now)
            if day == 1:
                _access(stack, "page", [page], now)
            else:
                _access(stack, "knowledge", [mint_id()], now)
            _apply(walk)
            assert (rows(stack, HEATS)[0][3] is not None) is pinned

        assert _events(stack, "page_pinned", "page_unpinned") == [("page_pinned", page), ("page_unpinned", page)]

    def test_a_page_nobody_read_is_not_pinned(self, stack: Stack, walk: Walk) -> None:
        """A fresh page is warm, and that alone shows it to nobody."""
        walk.warm(*about("tennis"))
        _access(stack, "knowledge", [mint_id()], START + timedelta(hours=2))
        _apply(walk)

        assert rows(stack, HEATS)[0][3] is None


class TestVisits:
    def test_a_visit_promotes_three_pages(self, stack: Stack, walk: Walk) -> None:
        """Three pages and one visit are 5.0: all three are handed over in order, and the count starts again."""
        pages = walk.warm(*about("tennis", "tennis", "tennis"))
        later = START + timedelta(hours=1)
        set_clock(stack, later)
        _access(stack, "page", pages[:1], later)
        _apply(walk)
        ordinals = rows(stack, "select page_id, extract_ordinal from memoryos.page order by extract_ordinal")

        assert ordinals == [(page, n) for n, page in enumerate(pages, 1)]
        assert rows(stack, SEGMENT) == [(0, 0, 1.0)]
        assert rows(stack, "select count(*) from memoryos.work where kind = 'distill'") == [(3,)]

    def test_a_segment_with_nothing_left_does_not_block_the_others(self, stack: Stack, walk: Walk) -> None:
        """One segment distilled and visited on and on; another still gets its turn."""
        tennis = walk.warm(*about("tennis", "tennis", "tennis", "tennis"))
        chess = walk.warm(*about("chess", "chess", "chess"), conversation="c2")
        for hour in range(1, 12):
            now = START + timedelta(hours=hour)
            set_clock(stack, now)
            _access(stack, "page", tennis[:1], now)
            if hour == 11:
                _access(stack, "page", chess[:1], now)
            _apply(walk)

        handed = rows(stack, "select page_id from memoryos.page where extract_ordinal > 4 order by extract_ordinal")
        assert handed == [(page,) for page in chess]
        assert rows(stack, "select extract_ordinal from memoryos.scope") == [(7,)]


class TestKnowledge:
    def test_use_makes_knowledge_last(self, stack: Stack, walk: Walk) -> None:
        """Strength 50 days becomes 75, and it is forgotten 75 * ln(10) days after its use; once an hour."""
        walk.warm(*about("tennis"))
        used, other = _knowledge(stack, "Maya plays tennis."), _knowledge(stack, "Maya has a cat.")
        later = START + 10 * DAY
        set_clock(stack, later)
        _access(stack, "knowledge", [used], later, times=9)
        _apply(walk)
        query = "select strength_days, last_reinforced_at, forget_at from memoryos.knowledge where knowledge_id = :id"
        ((strength, at, forget_at),) = rows(stack, query, id=used)

        assert (strength, at) == (75.0, later)
        assert (forget_at - later) / DAY == pytest.approx(172.694, abs=1e-3)
        assert rows(stack, query, id=other) == [(50.0, START, None)]
        assert _events(stack, "knowledge_reinforced") == [("knowledge_reinforced", used)]

    def test_memorybank_adds_a_day_a_recall(self, stack: Stack, walk: Walk) -> None:
        """S = 1, recalled at day 2: strength 2, weight .6065 at day 3 and .2231 at day 5, forgotten 4.6 days after."""
        walk.policy = PRESETS["memorybank"]
        put_policy(stack.app, stack.tenant_id, user_id=None, preset="memorybank", policy=walk.policy)
        recalled = _knowledge(stack, "Maya plays tennis.")
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.knowledge set strength_days = 1"))
        set_clock(stack, START + 2 * DAY)
        _access(stack, "knowledge", [recalled], START + 2 * DAY)
        _apply(walk)
        weights = {}
        for day in (3, 5):
            set_clock(stack, START + day * DAY)
            ((weights[day], strength, forget_at),) = rows(
                stack, "select weight, strength_days, forget_at from memory_v1.knowledge"
            )

        assert (strength, weights) == (2.0, pytest.approx({3: 0.6065, 5: 0.2231}, abs=5e-5))
        assert (forget_at - START) / DAY == pytest.approx(2 + 2 * 2.3026, abs=1e-3)

    def test_strength_is_capped_and_held_knowledge_never_due(self, stack: Stack, walk: Walk) -> None:
        """A year is the most; pinned and important rows get no moment of forgetting; forgotten rows nothing."""
        pinned = _knowledge(stack, "pinned", pinned=True)
        important = _knowledge(stack, "important", importance=0.95)
        forgotten = _knowledge(stack, "forgotten", status="forgotten")
        for day in range(1, 8):
            now = START + day * DAY
            set_clock(stack, now)
            _access(stack, "knowledge", [pinned, important, forgotten], now)
            _apply(walk)
        query = "select knowledge_id, strength_days, forget_at from memoryos.knowledge"

        assert sorted(rows(stack, query)) == sorted(
            [(pinned, 365.0, None), (important, 365.0, None), (forgotten, 50.0, None)]
        )


class TestCool:
    def test_a_cold_page_is_handed_over_at_the_moment_it_cools(self, stack: Stack, walk: Walk) -> None:
        """Nothing a minute before the closed-form moment, the hand-over at it, and no second one after it."""
        (page,) = walk.warm(*about("tennis"))
        ((cools_at,),) = rows(stack, "select cools_at from memoryos.page")
        assert cools_at - START == pytest.approx(COOLING, abs=timedelta(minutes=1))
        query = "select extract_ordinal, distill_cause, cools_at from memoryos.page"
        for moment, expected in (
            (cools_at - timedelta(minutes=1), (None, None, cools_at)),
            (cools_at, (1, "cooled", None)),
            (cools_at + 30 * DAY, (1, "cooled", None)),
        ):
            set_clock(stack, moment)
            _apply(walk)
            assert rows(stack, query) == [expected]

        assert _events(stack, "page_cooled", "page_handed") == [("page_cooled", page), ("page_handed", page)]
        assert rows(stack, "select subject_key from memoryos.work where kind = 'distill'") == [(str(page),)]

    def test_reading_puts_cooling_off(self, stack: Stack, walk: Walk) -> None:
        """A page read on its last day is still warm when it would have cooled."""
        (page,) = walk.warm(*about("tennis"))
        _access(stack, "page", [page], START + 12 * DAY)
        set_clock(stack, START + 13 * DAY)
        _apply(walk)

        assert _events(stack, "page_cooled") == []
        assert rows(stack, "select extract_ordinal from memoryos.page") == [(None,)]

    def test_a_distilled_page_is_archived_and_leaves_warm_search(self, stack: Stack, walk: Walk) -> None:
        """Cold after distillation: the page's own index rows go, its turns' stay."""
        (page,) = walk.warm(*about("tennis"))
        embed(walk.parts, walk.claim(WorkKind.EMBED, f"turns:{page}"))
        rows(stack, "update memoryos.page set extract_ordinal = 1 returning 1")
        rows(stack, EXTRACT)
        set_clock(stack, START + 13 * DAY)
        _apply(walk)
        kinds = "select owner_kind, count(*) from memoryos.{} group by owner_kind order by 1"

        assert rows(stack, "select tier, archived_at from memoryos.page") == [("archived", START + 13 * DAY)]
        assert rows(stack, kinds.format("embedding")) == [("segment", 1), ("turn", 5)]
        assert rows(stack, kinds.format("posting_length")) == [("turn", 5)]
        assert _events(stack, "page_cooled", "page_archived") == [("page_cooled", page), ("page_archived", page)]

    def test_turns_of_forgotten_knowledge_leave_with_their_page(self, stack: Stack, walk: Walk) -> None:
        """When the page is archived, a turn whose every knowledge is forgotten already leaves recall; others stay."""
        (page,) = walk.warm(*about("tennis"))
        embed(walk.parts, walk.claim(WorkKind.EMBED, f"turns:{page}"))
        for seq, status in ((1, "forgotten"), (2, "forgotten"), (2, "active")):
            knowledge = _knowledge(stack, f"{seq} {status}", status=status)
            rows(stack, CITE, knowledge=knowledge, seq=seq, page=page)
        rows(stack, "update memoryos.page set extract_ordinal = 1 returning 1")
        rows(stack, EXTRACT)
        set_clock(stack, START + 13 * DAY)
        _apply(walk)
        query = "select seq from memoryos.turn join memoryos.embedding on owner_id = turn_id order by seq"

        assert rows(stack, query) == [(2,), (3,), (4,), (5,)]

    def test_indexing_meanwhile_does_not_bring_a_turn_back(self, stack: Stack, walk: Walk) -> None:
        """A page whose turns are being indexed again is archived after that, and what leaves recall has left it."""
        (page,) = walk.warm(*about("tennis"))
        embed(walk.parts, walk.claim(WorkKind.EMBED, f"turns:{page}"))
        rows(stack, CITE, knowledge=_knowledge(stack, "gone", status="forgotten"), seq=1, page=page)
        rows(stack, "update memoryos.page set extract_ordinal = 1 returning 1")
        rows(stack, EXTRACT)
        set_clock(stack, START + 13 * DAY)
        with ThreadPoolExecutor() as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                ((conversation,),) = rows(stack, "select conversation_id from memoryos.page")
                lock_conversation(connection, stack.tenant_id, conversation)
                kept = find_recallable_turns(connection, stack.tenant_id, page)
                archiving = pool.submit(_apply, walk)
                wait_for_a_waiter(stack)
                terms = [(turn, ["tennis"]) for turn in kept]
                put_postings(connection, stack.tenant_id, create_scope(stack), "turn", terms)
            archiving.result(20)
        query = "select t.seq from memoryos.turn t join memoryos.posting_length on owner_id = turn_id order by t.seq"

        assert rows(stack, query) == [(2,), (3,), (4,), (5,)]

    def test_a_page_under_distillation_is_neither_archived_nor_handed_twice(self, stack: Stack, walk: Walk) -> None:
        """Heated, not distilled, and cold by now: it is looked at again, and archived once it is distilled."""
        pages = walk.warm(*about("tennis", "tennis", "tennis", "tennis"))
        set_clock(stack, START + 13 * DAY)
        _apply(walk)
        assert rows(stack, "select distinct tier, distill_cause from memoryos.page") == [("warm", "heated")]
        assert rows(stack, "select extract_ordinal from memoryos.scope") == [(4,)]

        rows(stack, EXTRACT)
        set_clock(stack, START + 13 * DAY + timedelta(hours=1))
        _apply(walk)
        assert rows(stack, "select distinct tier from memoryos.page") == [("archived",)]
        assert len(_events(stack, "page_archived")) == len(pages)

    def test_the_policy_heated_lets_a_cold_page_rest(self, stack: Stack) -> None:
        """It has cooled, is told so once, and is neither distilled nor archived."""
        set_clock(stack, START)
        walk = Walk(stack, policy=Policy(distill_when="heated"))
        (page,) = walk.warm(*about("tennis"))
        for day in (13, 14):
            set_clock(stack, START + day * DAY)
            _apply(walk)

        assert rows(stack, "select tier, extract_ordinal, cools_at from memoryos.page") == [("warm", None, None)]
        assert _events(stack, "page_cooled") == [("page_cooled", page)]


class TestConcurrency:
    def test_a_late_run_leaves_nothing(self, stack: Stack, walk: Walk) -> None:
        """A fenced run applies no access, cools no page and takes no ordinal."""
        (page,) = walk.warm(*about("tennis"))
        _access(stack, "page", [page], START + DAY)
        set_clock(stack, START + 40 * DAY)
        subject = str(create_scope(stack))
        late = walk.claim(WorkKind.HEAT, subject, lease_seconds=0)
        walk.claim(WorkKind.HEAT, subject)
        with pytest.raises(FencedError):
            apply_heat(walk.parts, late)

        assert rows(stack, HEATS)[0][:2] == (1.0, START)
        assert rows(stack, "select extract_ordinal from memoryos.scope") == [(0,)]
        assert rows(stack, "select count(*) from memoryos.access_event where applied_at is null") == [(1,)]

    def test_heat_and_segments_share_one_gapless_order(self, stack: Stack, walk: Walk) -> None:
        """Both kinds of work hand pages over; the ordinals of a scope have no gap and no double."""
        walk.warm(*about("tennis", "tennis", "chess"))
        set_clock(stack, START + 13 * DAY)
        owe_due(stack.ledger_database, name="heat")
        (heat,) = claim_due(stack, WorkKind.HEAT)
        fresh = walk.seal(*about("go", "go", "go", "go"), conversation="c2")
        walk.summarize(fresh)
        (segment,) = claim_due(stack, WorkKind.SEGMENT)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(apply_heat, walk.parts, heat)
            second = pool.submit(assign_segments, walk.parts, segment)
            first.result(), second.result()
        ordinals = rows(stack, "select extract_ordinal from memoryos.page order by extract_ordinal")

        assert ordinals == [(n,) for n in range(1, 8)]
        assert rows(stack, "select extract_ordinal from memoryos.scope") == [(7,)]

    def test_a_segment_changed_meanwhile_is_read_again(self, stack: Stack, walk: Walk) -> None:
        """Heat waits for whoever has the scope and counts its visit on what that one left, not on what was."""
        (page,) = walk.warm(*about("tennis"))
        _access(stack, "page", [page], START + DAY)
        set_clock(stack, START + DAY)
        owe_due(stack.ledger_database, name="heat")
        (lease,) = claim_due(stack, WorkKind.HEAT)
        with ThreadPoolExecutor(1) as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                lock_scope(connection, stack.tenant_id, create_scope(stack))
                connection.execute(text("update memoryos.segment set l_interaction = 2"))
                heating = pool.submit(apply_heat, walk.parts, lease)
                wait_for_a_waiter(stack)
            heating.result(timeout=30)

        assert rows(stack, SEGMENT) == [(1, 2, 4.0)]

    def test_every_life_follows_the_table(self, stack: Stack, walk: Walk) -> None:
        """The events of every page, replayed, are legal and end in the state its columns speak of."""
        pages = walk.warm(*about("tennis", "tennis", "tennis", "tennis", "chess", "go"))
        _access(stack, "page", pages[4:5], START + DAY)
        set_clock(stack, START + 14 * DAY)
        _apply(walk)
        facts = "select page_id, tier, summarized_at, assigned_at, extract_ordinal from memoryos.page"
        for page, tier, *moments in rows(stack, facts):
            state = PageState.SEALED
            for (kind,) in rows(
                stack, "select kind from memoryos.event where subject_id = :id order by event_id", id=page
            )[1:]:
                state = move(state, kind)
            seen = [moment is not None for moment in moments]
            assert state is page_state(PageFacts(tier, *seen, extracted=False))
