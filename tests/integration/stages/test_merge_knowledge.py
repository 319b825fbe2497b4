"""Merging keeps one truth, a readable history, and the order things were said in."""

import threading
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import FencedError, InvalidOutputError, StaleReadError
from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.knowledge import Candidate, Decision, Neighbour, Verdict
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import RetryDecision, WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.stages.merge_knowledge import merge_knowledge
from memoryos_pipeline.store.found import read_traits
from memoryos_pipeline.store.knowledge import find_scope, move_scope
from memoryos_pipeline.store.search import ScopeKey
from tests.conftest import Stack
from tests.integration.stages.cold import START, Cold

HISTORY = """
    select content, version, status, valid_from, valid_to, superseded_by from memoryos.knowledge order by valid_from
"""


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope whose past a test writes."""
    return Cold(stack)


class TestMerge:
    def test_a_change_of_mind_leaves_one_truth_and_a_history(self, cold: Cold) -> None:
        """likes -> dislikes: one live row, and the old one says until when it held and what replaced it."""
        cold.page("spicy food=loved", day=0)
        cold.work()
        cold.page("spicy food=hated", day=7)
        cold.work()

        old, new = cold.rows(HISTORY)
        assert cold.live() == ["Maya: the spicy food is hated"]
        assert (old[1], old[2], old[4]) == (1, "superseded", START + timedelta(days=7))
        assert (new[1], new[2], new[4]) == (2, "active", None)
        assert cold.rows("select count(distinct lineage_id) from memoryos.knowledge") == [(1,)]

    def test_a_page_may_contradict_itself(self, cold: Cold) -> None:
        """Two values on one page, nothing known before: the later turn is the truth."""
        cold.page("residence=Fukuoka", "residence=Osaka")
        cold.work()
        assert cold.live() == ["Maya: the residence is Osaka"]
        assert len(cold.rows(HISTORY)) == 2

    def test_the_model_is_shown_what_the_page_said_before(self, cold: Cold) -> None:
        """The second statement of a page is held against the first under the id it is stored under."""
        cold.page("residence=Fukuoka", "residence=Osaka")
        cold.work()
        [(candidates, neighbours)] = cold.model.resolved
        assert [one.content for one in candidates] == ["Maya: the residence is Osaka"]
        first = cold.rows("select knowledge_id from memoryos.knowledge where version = 1")
        assert [(near.knowledge_id,) for near in neighbours[0]] == first

    def test_an_old_import_does_not_win(self, cold: Cold) -> None:
        """A session of two years ago that arrives today is stored as what was true then."""
        cold.page("residence=Osaka", day=0)
        cold.work()
        cold.page("residence=Fukuoka", day=-730, conversation="import")
        cold.work()

        old, new = cold.rows(HISTORY)
        assert cold.live() == ["Maya: the residence is Osaka"]
        assert (old[0], old[2], old[4]) == ("Maya: the residence is Fukuoka", "superseded", START)
        assert new[4] is None

    def test_the_model_does_not_date_what_was_said(self, cold: Cold) -> None:
        """The scripted model claims 1999 for everything; turn time is the time of the cited turn."""
        cold.page("residence=Osaka", day=3)
        cold.work()
        assert cold.rows("select turn_at, valid_from, event_at from memoryos.knowledge") == [
            (START + timedelta(days=3), START + timedelta(days=3), None)
        ]

    def test_the_same_statement_is_one_row_with_two_sources(self, cold: Cold) -> None:
        """Said in two sessions, handed to merging at once: one live row that cites both turns."""
        cold.page("I play the cello", conversation="one", day=0)
        cold.page("I play the CELLO", conversation="two", day=1)
        cold.work()
        assert len(cold.rows(HISTORY)) == 1
        assert cold.rows("select count(distinct conversation_id) from memoryos.knowledge_source") == [(2,)]

    def test_a_repeat_reinforces_once_an_hour(self, cold: Cold) -> None:
        """Repeated on a later day a row grows stronger, and its end moves; again within the hour it does not."""
        cold.at(0)
        cold.page("residence=Osaka", day=0)
        cold.work()
        cold.at(10)
        for conversation in ("two", "three"):
            cold.page("residence=Osaka", day=10, conversation=conversation)
            cold.work()
        query = "select strength_days, last_reinforced_at, forget_at from memoryos.knowledge"
        [(strength, reinforced_at, forget_at)] = cold.rows(query)
        assert strength == 75.0
        assert reinforced_at == START + timedelta(days=10)
        assert (forget_at - reinforced_at) / timedelta(days=1) == pytest.approx(2.302585 * 75)

    def test_important_knowledge_has_no_end(self, cold: Cold) -> None:
        """At the importance floor a row is not forgotten; below it has its moment."""
        cold.page("*I am allergic to penicillin", "I had soup for lunch")
        cold.work()
        query = "select forget_at is null from memoryos.knowledge order by importance"
        assert cold.rows(query) == [(False,), (True,)]

    def test_every_transition_leaves_an_event(self, cold: Cold) -> None:
        """Added, superseded (naming its successor), each with the work that did it; ids only."""
        cold.page("residence=Fukuoka", day=0)
        cold.page("residence=Osaka", day=1)
        cold.work()
        kinds = cold.rows("select kind, work_id is not null from memoryos.event order by event_id")
        assert [kind for kind, _ in kinds] == [
            "page_distilled", "page_distilled", "knowledge_added", "knowledge_added", "knowledge_superseded",
        ]  # fmt: skip
        assert all(has_work for _, has_work in kinds)

    def test_only_live_knowledge_is_indexed(self, cold: Cold) -> None:
        """Vector and postings exist for exactly the live rows, history rows that arrive late included."""
        cold.page("residence=Osaka", "I play the cello", day=5)
        cold.page("residence=Kobe", day=9)
        cold.page("residence=Fukuoka", day=-100, conversation="import")
        cold.work()
        live = cold.rows("select knowledge_id from memoryos.knowledge where status = 'active' order by 1")
        assert len(live) == 2
        for table in ("embedding", "posting", "posting_length"):
            query = f"select distinct owner_id from memoryos.{table} where owner_kind = 'knowledge' order by 1"
            assert cold.rows(query) == live

    def test_a_decision_is_recorded_with_its_reason(self, cold: Cold) -> None:
        """An UPDATE keeps both wordings, who decided, and why; a statement that met nothing has no verdict."""
        cold.page("residence=Fukuoka", day=0)
        cold.page("residence=Osaka", day=1)
        cold.work()
        query = "select decision, new_content, old_content, decided_by, evidence ->> 'reason' from memoryos.verdict"
        assert cold.rows(query) == [
            ("UPDATE", "Maya: the residence is Osaka", "Maya: the residence is Fukuoka", "scripted/1", "another value")
        ]

    def test_the_model_is_not_asked_about_what_stands_alone(self, cold: Cold) -> None:
        """No neighbour, no call."""
        cold.page("residence=Osaka")
        cold.work()
        assert cold.model.resolved == []

    def test_a_page_of_small_talk_is_an_explicit_nothing(self, cold: Cold) -> None:
        """Nothing found is recorded as 0, and the line goes on."""
        cold.page("- hm")
        cold.page("residence=Osaka")
        cold.work()
        assert cold.rows("select knowledge_count from memoryos.page order by extract_ordinal") == [(0,), (1,)]
        assert cold.rows("select merged_ordinal from memoryos.scope") == [(2,)]


CHANGES = [
    ("I love spicy food.", "I can't stand spicy food any more."),
    ("私は辛い料理が好きです。", "もう辛い料理は好きじゃないです。"),
    ("저는 매운 음식을 좋아해요.", "이제 매운 음식을 싫어해요."),
    ("我喜欢吃辣。", "我现在不喜欢吃辣了。"),
    ("I live in Fukuoka.", "I moved to Osaka last month."),
    ("I'm allergic to penicillin.", "I have no allergies."),
]


class TestWithoutAModel:
    @pytest.mark.parametrize(("before", "after"), CHANGES)
    def test_contradictions_are_found_by_rule_in_four_languages(self, cold: Cold, before: str, after: str) -> None:
        """The extractive model and the real path: one live truth, the old one readable with its end."""
        cold.parts = replace(cold.parts, language_model=ExtractiveModel(cold.parts.embedder))
        cold.page(before, day=0)
        cold.work()
        cold.page(after, day=7)
        cold.work()
        old, new = cold.rows(HISTORY)
        assert after in new[0]
        assert (new[2], new[4]) == ("active", None)
        assert before in old[0]
        assert (old[2] in {"closed", "superseded"}, old[4]) == (True, START + timedelta(days=7))


class TestOrder:
    def test_distilling_out_of_order_gives_the_same_knowledge(self, cold: Cold, stack: Stack) -> None:
        """Pages distilled last to first are merged first to last, with the same rows in the end."""
        other = Cold(stack)
        for number in range(4):
            cold.page(f"residence=city {number}", f"job=job {number % 2}", day=number, user="maya")
            other.page(f"residence=city {number}", f"job=job {number % 2}", day=number, user="ken")
        leases = {lease.subject_key: lease for lease in cold.claim(WorkKind.DISTILL)}
        forward = cold.rows("select page_id from memoryos.page order by scope_id, extract_ordinal")
        ken = scope_id(cold.tenant_id, "ken", "companion")
        pages = [str(page) for (page,) in forward]
        backwards = [lease for key in reversed(pages) if (lease := leases[key]).scope_id == ken]
        for lease in [leases[key] for key in pages if leases[key].scope_id != ken] + backwards:
            distill_page(cold.parts, lease)
            for merge in cold.claim(WorkKind.MERGE):
                merge_knowledge(cold.parts, merge)

        query = """
            select content, version, status, valid_from, valid_to from memoryos.knowledge
             where scope_id = :scope order by content, version"""
        maya = scope_id(cold.tenant_id, "maya", "companion")
        assert cold.rows(query, scope=ken) == cold.rows(query, scope=maya)
        assert len(cold.rows(query, scope=ken)) == 4 + 4

    def test_a_page_whose_distillation_died_is_passed_over(self, cold: Cold) -> None:
        """A dead page does not stop the pages behind it; replayed later, it goes to the end of the line."""
        cold.page("residence=Fukuoka", day=0)
        cold.page("residence=Osaka", day=1)
        first, second = sorted(cold.claim(WorkKind.DISTILL), key=lambda lease: lease.work_id)
        dead = RetryDecision(dead=True, delay_seconds=0, burns_attempt=True)
        cold.stack.ledger.fail(first, dead, error_class="permanent", error="why")
        distill_page(cold.parts, second)
        cold.work()
        assert cold.live() == ["Maya: the residence is Osaka"]

        revive = "update memoryos.work set state = 'ready', attempts = 0 where state = 'dead' returning 1"
        assert cold.rows(revive) == [(1,)]
        cold.work()
        assert cold.live() == ["Maya: the residence is Osaka"]
        assert [row[0] for row in cold.rows(HISTORY)] == [
            "Maya: the residence is Fukuoka", "Maya: the residence is Osaka",
        ]  # fmt: skip
        assert cold.rows("select count(*) from memoryos.candidate") == [(0,)]

    def test_merging_waits_for_a_page_that_is_being_distilled(self, cold: Cold) -> None:
        """The second page alone changes nothing; with the first both are merged."""
        cold.page("residence=Fukuoka", day=0)
        cold.page("residence=Osaka", day=1)
        first, second = sorted(cold.claim(WorkKind.DISTILL), key=lambda lease: lease.work_id)
        distill_page(cold.parts, second)
        cold.work()
        assert cold.live() == []
        distill_page(cold.parts, first)
        cold.work()
        assert cold.live() == ["Maya: the residence is Osaka"]


class TestRepeat:
    def test_working_twice_gives_the_same_rows(self, cold: Cold) -> None:
        """Every piece of work asked for and done again changes no derived row."""
        cold.page("residence=Fukuoka", "!I ask why @Ken", day=0)
        cold.page("residence=Osaka", "I ask why so often @ken", day=1)
        cold.work()
        before = cold.dump()
        again = "update memoryos.work set state = 'ready', generation = generation + 1 returning 1"
        assert len(cold.rows(again)) == 3
        cold.work()
        assert cold.dump() == before
        assert cold.rows("select count(*) from memoryos.work where state <> 'done'") == [(0,)]

    def test_a_late_worker_changes_nothing(self, cold: Cold) -> None:
        """A merge whose lease was lost is rolled back whole."""
        cold.page("residence=Osaka")
        [lease] = cold.claim(WorkKind.DISTILL)
        distill_page(cold.parts, lease)
        [late] = cold.claim(WorkKind.MERGE, lease_seconds=0)
        [ours] = cold.claim(WorkKind.MERGE)
        with pytest.raises(FencedError):
            merge_knowledge(cold.parts, late)
        assert cold.live() == []
        merge_knowledge(cold.parts, ours)
        assert cold.live() == ["Maya: the residence is Osaka"]

    def test_two_merges_at_once_leave_linear_versions(self, cold: Cold) -> None:
        """Two workers think about the same page at once: one writes, the other is refused."""
        cold.page("residence=Fukuoka", day=0)
        cold.work()
        cold.page("residence=Osaka", day=1)
        [lease] = cold.claim(WorkKind.DISTILL)
        distill_page(cold.parts, lease)
        late = cold.claim(WorkKind.MERGE, lease_seconds=0)
        leases = late + cold.claim(WorkKind.MERGE)
        together = threading.Barrier(2)

        def decide(candidate: Candidate, near: object) -> Verdict:
            together.wait(10)
            [one] = near  # type: ignore[misc]
            return Verdict(Decision.UPDATE, one.knowledge_id)

        cold.model.overrule = decide
        outcomes: list[str] = []

        def merge(number: int) -> None:
            try:
                merge_knowledge(cold.parts, leases[number])
                outcomes.append("written")
            except (FencedError, StaleReadError) as error:
                outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=merge, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert "written" in outcomes
        assert len(outcomes) == 2
        versions = cold.rows("select version, status from memoryos.knowledge order by version")
        assert versions == [(1, "superseded"), (2, "active")]

    def test_knowledge_that_changed_meanwhile_is_read_again(self, cold: Cold) -> None:
        """Between reading and writing something retired a row: the page is thought about anew, nothing is written."""
        cold.page("residence=Fukuoka", day=0)
        cold.work()
        cold.page("residence=Osaka", day=1)
        [lease] = cold.claim(WorkKind.DISTILL)
        distill_page(cold.parts, lease)

        def decide(candidate: Candidate, near: list[Neighbour]) -> Verdict:
            with cold.stack.app.transaction(cold.tenant_id) as connection:
                assert find_scope(connection, cold.tenant_id, lease.scope_id, lock=True)
                move_scope(connection, cold.tenant_id, lease.scope_id)
            return Verdict(Decision.UPDATE, near[0].knowledge_id)

        cold.model.overrule = decide
        [merge] = cold.claim(WorkKind.MERGE)
        with pytest.raises(StaleReadError):
            merge_knowledge(cold.parts, merge)
        assert cold.live() == ["Maya: the residence is Fukuoka"]


class TestBound:
    def test_an_invented_id_changes_nothing(self, cold: Cold) -> None:
        """A verdict about knowledge that was not shown rejects the answer and leaves the page to be merged."""
        cold.page("residence=Fukuoka", day=0)
        cold.work()
        cold.model.overrule = lambda *_: Verdict(Decision.UPDATE, UUID(int=1))
        cold.page("residence=Osaka", day=1)
        with pytest.raises(InvalidOutputError):
            cold.work()
        assert cold.live() == ["Maya: the residence is Fukuoka"]
        assert cold.rows("select count(*) from memoryos.candidate") == [(1,)]

    def test_nothing_of_another_scope_is_shown_or_touched(self, cold: Cold) -> None:
        """The same statements of another user are neither neighbours nor changed."""
        cold.page("residence=Osaka", "I play the cello", user="ken")
        cold.work()
        query = "select * from memoryos.knowledge where scope_id = :scope order by knowledge_id"
        ken = scope_id(cold.tenant_id, "ken", "companion")
        before = cold.rows(query, scope=ken)
        cold.page("residence=Kobe", "I play the cello", user="maya")
        cold.work()
        assert cold.model.resolved == []
        assert cold.rows(query, scope=ken) == before
        assert cold.rows("""
            select count(*) from memoryos.knowledge_link l
              join memoryos.knowledge a on a.knowledge_id = l.source_id
              join memoryos.knowledge b on b.knowledge_id = l.target_id where a.scope_id <> b.scope_id""") == [(0,)]


class TestLink:
    def test_near_statements_are_linked_both_ways_with_a_reason(self, stack: Stack) -> None:
        """Two statements that share most words: two link rows that name the shared terms."""
        cold = Cold(stack, policy=Policy(link_floor=0.5))
        cold.page("I bought a green bicycle in Kyoto yesterday", day=0)
        cold.page("I bought a green bicycle in Kyoto today", day=1)
        cold.work()
        links = cold.rows("select type, reason, weight from memoryos.knowledge_link")
        assert [kind for kind, _, _ in links] == ["similar", "similar"]
        assert all("bicycl" in reason and weight > 0.5 for _, reason, weight in links)

    def test_a_row_keeps_its_strongest_links(self, stack: Stack) -> None:
        """With room for two links the weakest are dropped, at both ends."""
        cold = Cold(stack, policy=Policy(links_per_knowledge=2, link_floor=0.5))
        for day in range(6):
            cold.page(f"I bought a green bicycle in Kyoto shop number {day}", day=day)
            cold.work()
        counts = cold.rows("select source_id, count(*) from memoryos.knowledge_link group by 1")
        assert counts
        assert all(count <= 2 for _, count in counts)
        one_way = """select count(*) from memoryos.knowledge_link a where not exists (
            select from memoryos.knowledge_link b where b.source_id = a.target_id and b.target_id = a.source_id)"""
        assert cold.rows(one_way) == [(0,)]

    def test_a_correction_points_at_what_it_corrects(self, cold: Cold) -> None:
        """The corrected row is closed, linked, and the assistant's wrong turn is kept as a source."""
        cold.page("assistant> You live in Nagoya", day=0)
        cold.work()
        cold.model.overrule = lambda _, near: Verdict(Decision.CLOSE, near[0].knowledge_id, "wrong")
        cold.parts = replace(cold.parts, policy=Policy(neighbour_floor=0.1))
        cold.page("assistant> - so, how is Nagoya?", "?I do not live in Nagoya, I live in Osaka", day=1)
        cold.work()
        assert cold.live() == ["I do not live in Nagoya, I live in Osaka"]
        assert cold.rows("select type, reason from memoryos.knowledge_link") == [("corrects", "wrong")]
        query = """select s.seq from memoryos.knowledge_source s join memoryos.knowledge k using (knowledge_id)
                    where k.kind = 'correction' order by 1"""
        assert cold.rows(query) == [(2,), (3,)]


class TestPerson:
    def test_a_name_is_one_entity_a_type(self, cold: Cold) -> None:
        """Ken, ken and Ｋｅｎ are one person, mentioned three times, spelled as first met."""
        cold.page("I met someone @Ken", "we had tea again @ken", "he plays chess @Ｋｅｎ")
        cold.work()
        assert cold.rows("select name, name_norm, type, mentions from memoryos.entity") == [("Ken", "ken", "person", 3)]

    def test_a_trait_stands_on_live_knowledge(self, cold: Cold) -> None:
        """Two findings raise confidence and version; with the evidence gone the trait is not told any more."""
        cold.page("!I wonder how tides work", day=0)
        cold.page("!I read about volcanoes for fun", day=1)
        cold.work()
        assert cold.rows("select level, confidence, cardinality(knowledge_ids), version from memoryos.trait") == [
            ("high", 0.75, 2, 2)
        ]
        maya = ScopeKey(cold.tenant_id, scope_id(cold.tenant_id, "maya", "companion"))
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            assert len(read_traits(connection, maya)) == 1
        cold.rows("""update memoryos.knowledge set status = 'forgotten', forgotten_at = now() returning 1""")
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            assert read_traits(connection, maya) == []
