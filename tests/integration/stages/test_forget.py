"""Forgetting takes what has faded out of every search, gives it back on request, and stops when it is too much."""

from dataclasses import replace
from uuid import UUID

import pytest

from memoryos_pipeline.domain.errors import FencedError, NotFoundError
from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages import forget as forget_stage
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.forget import forget, preview_forgetting
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.store.sweeps import owe_due
from memoryos_pipeline.store.tenants import create_tenant
from tests.conftest import Stack
from tests.integration.stages.cold import Cold

INDEXED = "select distinct owner_kind, owner_id from memoryos.{table} order by 1, 2"
INDEX_TABLES = ("embedding", "posting", "posting_length")
ANSWER = """
    insert into memoryos.llm_call (tenant_id, request_sha256, task, scope_id, work_id, fence, model, prompt_version,
                                   response)
    select tenant_id, sha256('x'), kind, scope_id, work_id, 1, 'm', 'p',
           jsonb_build_object('content', 'I play the cello') from memoryos.work returning task
"""
FADED = 116.0
"""Days after which a row of the default policy that nobody touched is due."""
GRACE_OVER = FADED + 31


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope that begins on day 0."""
    cold = Cold(stack)
    cold.at(0)
    return cold


def _sweep(cold: Cold, user: str = "maya") -> None:
    cold.owe(WorkKind.FORGET, scope_id(cold.tenant_id, user, "companion"))
    for lease in cold.claim(WorkKind.FORGET):
        forget(cold.parts, lease)


def _due_sweeps(cold: Cold, times: int) -> None:
    for _ in range(times):
        owe_due(cold.stack.ledger_database, name="forget")
        for lease in cold.claim(WorkKind.FORGET):
            forget(cold.parts, lease)


def _embed(cold: Cold) -> None:
    for lease in cold.claim(WorkKind.EMBED):
        embed(cold.parts, lease)


def _learn(cold: Cold, *turns: str, archived: bool = True, **where: object) -> None:
    """Distill, merge and index a page; archive it when asked to."""
    page = cold.page(*turns, **where)  # type: ignore[arg-type]
    cold.work()
    cold.rows(
        """
        insert into memoryos.work (tenant_id, kind, subject_key, scope_id)
        select tenant_id, 'embed', 'turns:' || page_id, scope_id from memoryos.page
         where page_id = :page returning 1""",
        page=page,
    )
    _embed(cold)
    if archived:
        cold.rows("update memoryos.page set tier = 'archived' where page_id = :page returning 1", page=page)


def _index(cold: Cold) -> dict[str, list[tuple[object, ...]]]:
    return {table: cold.rows(INDEXED.format(table=table)) for table in INDEX_TABLES}


def _statuses(cold: Cold) -> list[tuple[object, ...]]:
    return cold.rows("select content, status from memoryos.knowledge order by valid_from, content")


def _knowledge_id(cold: Cold, content: str) -> UUID:
    [(found,)] = cold.rows("select knowledge_id from memoryos.knowledge where content = :content", content=content)
    return UUID(str(found))


def _events(cold: Cold, kind: str) -> int:
    return int(cold.rows("select count(*) from memoryos.event where kind = :kind", kind=kind)[0][0])


class TestForget:
    def test_faded_knowledge_leaves_every_search_and_comes_back(self, cold: Cold) -> None:
        """Its index rows and those of its turn are gone; restored and embedded, exactly the same rows are back."""
        _learn(cold, "I play the cello")
        before = _index(cold)
        assert all(len(rows) == 2 for rows in before.values())

        cold.at(FADED)
        _sweep(cold)
        assert _statuses(cold) == [("I play the cello", "forgotten")]
        assert _index(cold) == {table: [] for table in INDEX_TABLES}

        assert restore_knowledge(cold.parts, cold.tenant_id, _knowledge_id(cold, "I play the cello"))
        _embed(cold)
        assert _index(cold) == before
        assert cold.live() == ["I play the cello"]

    def test_knowledge_that_has_not_faded_stays(self, cold: Cold) -> None:
        """A day before its moment nothing happens."""
        _learn(cold, "I play the cello")
        before = _index(cold)
        cold.at(115.0)
        _sweep(cold)
        assert cold.live() == ["I play the cello"]
        assert _index(cold) == before

    def test_important_and_pinned_knowledge_is_not_forgotten(self, cold: Cold) -> None:
        """Neither the importance floor nor a pin gives way to years."""
        _learn(cold, "*I am allergic to penicillin", "I play the cello", "I had soup")
        cold.rows(
            """update memoryos.knowledge set pinned_at = memoryos.now(), forget_at = memoryos.now()
                where content = 'I play the cello' returning 1"""
        )
        cold.at(1000)
        _sweep(cold)
        assert cold.live() == ["I am allergic to penicillin", "I play the cello"]

    def test_sweeping_twice_takes_no_more(self, cold: Cold) -> None:
        """The second sweep changes no row and tells nothing."""
        _learn(cold, "I play the cello")
        cold.at(FADED)
        _sweep(cold)
        query = "select * from memoryos.knowledge"
        before, told = cold.rows(query), _events(cold, "knowledge_forgotten")
        _sweep(cold)
        assert cold.rows(query) == before
        assert (told, _events(cold, "knowledge_forgotten")) == (1, 1)

    def test_history_goes_with_the_truth_that_replaced_it(self, cold: Cold) -> None:
        """Replaced versions are forgotten with the live one and come back with it, as history."""
        _learn(cold, "residence=Fukuoka", day=0)
        _learn(cold, "residence=Osaka", day=1)
        cold.at(FADED)
        _sweep(cold)
        assert {status for _, status in _statuses(cold)} == {"forgotten"}

        restore_knowledge(cold.parts, cold.tenant_id, _knowledge_id(cold, "Maya: the residence is Fukuoka"))
        assert [status for _, status in _statuses(cold)] == ["superseded", "active"]

    def test_nothing_of_another_scope_or_tenant_is_touched(self, cold: Cold) -> None:
        """A sweep of one scope leaves the same statement of another scope, due as well, where it is."""
        _learn(cold, "I play the cello", user="maya")
        _learn(cold, "I play the cello", user="ken")
        cold.at(FADED)
        _sweep(cold, "maya")
        statuses = cold.rows(
            "select s.user_id, k.status from memoryos.knowledge k join memoryos.scope s using (scope_id) order by 1"
        )
        assert statuses == [("ken", "active"), ("maya", "forgotten")]
        with pytest.raises(NotFoundError):
            restore_knowledge(cold.parts, mint_id(), _any_forgotten(cold))

    def test_another_tenant_keeps_what_one_forgets(self, cold: Cold) -> None:
        """The same user, agent and statement in another tenant: no row and no index entry of it changes."""
        other_tenant = mint_id()
        create_tenant(cold.stack.owner, other_tenant, "other")
        other = Cold(replace(cold.stack, tenant_id=other_tenant))
        for each in (cold, other):
            _learn(each, "residence=Fukuoka", day=0)
            _learn(each, "residence=Osaka", day=1)
        before, indexed = other.dump(), _index(other)
        assert len(before["knowledge"]) == 2
        cold.at(FADED)
        _sweep(cold)
        cold.at(GRACE_OVER)
        _sweep(cold)
        assert _statuses(cold) == []
        assert (other.dump(), _index(other)) == (before, indexed)

    def test_a_late_worker_forgets_nothing(self, cold: Cold) -> None:
        """A sweep whose lease was lost is rolled back."""
        _learn(cold, "I play the cello")
        cold.at(FADED)
        cold.owe(WorkKind.FORGET, scope_id(cold.tenant_id, "maya", "companion"))
        [late] = cold.claim(WorkKind.FORGET, lease_seconds=0)
        cold.claim(WorkKind.FORGET)
        with pytest.raises(FencedError):
            forget(cold.parts, late)
        assert cold.live() == ["I play the cello"]

    def test_more_than_a_batch_is_forgotten(self, cold: Cold, monkeypatch: pytest.MonkeyPatch) -> None:
        """Batches follow one another until nothing is due."""
        monkeypatch.setattr(forget_stage, "BATCH_ROWS", 2)
        _learn(cold, *(f"statement number {n}" for n in range(5)))
        cold.at(FADED)
        _sweep(cold)
        assert cold.live() == []
        assert _events(cold, "knowledge_forgotten") == 5


def _any_forgotten(cold: Cold) -> UUID:
    [(found,)] = cold.rows("select knowledge_id from memoryos.knowledge where status = 'forgotten' limit 1")
    return UUID(str(found))


class TestTurns:
    def test_a_turn_of_a_warm_page_stays(self, cold: Cold) -> None:
        """Its knowledge is forgotten, its page is not archived: the turn can still be found; archived, it cannot."""
        _learn(cold, "I play the cello", archived=False)
        cold.at(FADED)
        _sweep(cold)
        assert [kind for kind, _ in _index(cold)["embedding"]] == ["turn"]
        cold.rows("update memoryos.page set tier = 'archived' returning 1")
        _sweep(cold)
        assert _index(cold)["embedding"] == []

    def test_a_turn_with_live_knowledge_or_with_none_stays(self, cold: Cold) -> None:
        """Of three turns of an archived page only the one leaves whose every statement is forgotten."""
        _learn(cold, "*I am allergic to penicillin", "I play the cello", "- hm, so many bees")
        cold.at(FADED)
        _sweep(cold)
        left = cold.rows(
            """select content from memoryos.turn t where exists (
                 select from memoryos.embedding e where e.owner_id = t.turn_id) order by seq"""
        )
        assert left == [("*I am allergic to penicillin",), ("- hm, so many bees",)]

    def test_a_turn_leaves_with_its_knowledge(self, cold: Cold, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sweep that dies after its first batch has not left the text of that batch searchable as a turn."""
        _learn(cold, "I play the cello")
        cold.at(FADED)

        def die(*_: object, **__: object) -> list[UUID]:
            raise ConnectionError

        monkeypatch.setattr(forget_stage, "purge_due", die)
        with pytest.raises(ConnectionError):
            _sweep(cold)
        assert _index(cold) == {table: [] for table in INDEX_TABLES}

    def test_embedding_the_page_again_does_not_bring_a_turn_back(self, cold: Cold) -> None:
        """Forgotten text stays out of the index when its page is embedded anew."""
        _learn(cold, "I play the cello")
        cold.at(FADED)
        _sweep(cold)
        cold.rows("update memoryos.work set state = 'ready' where kind = 'embed' returning 1")
        _embed(cold)
        assert _index(cold)["embedding"] == []

    def test_purged_text_does_not_return(self, cold: Cold) -> None:
        """Nothing cites the turn any more, its page is embedded anew: the turn stays out, no invariant is broken."""
        _learn(cold, "I play the cello", "- hm, so many bees")
        cold.rows("update memoryos.page set archived_at = memoryos.now() returning 1")
        cold.at(FADED)
        _sweep(cold)
        cold.at(GRACE_OVER)
        _sweep(cold)
        assert cold.rows("select count(*) from memoryos.knowledge_source") == [(0,)]
        cold.rows("update memoryos.work set state = 'ready' where kind = 'embed' returning 1")
        _embed(cold)
        indexed = "select content from memoryos.turn join memoryos.embedding on owner_id = turn_id"
        assert cold.rows(indexed) == [("- hm, so many bees",)]
        assert cold.rows("select sentence from memoryos.violations where invariant in ('I5', 'I12')") == []

    def test_a_turn_of_a_warm_page_leaves_with_the_last_row_it_gave(self, cold: Cold) -> None:
        """Its knowledge is purged while its page is still warm: the turn leaves then, for nobody will know later."""
        _learn(cold, "I play the cello", archived=False)
        cold.at(FADED)
        _sweep(cold)
        cold.at(GRACE_OVER)
        _sweep(cold)
        cold.rows("update memoryos.work set state = 'ready' where kind = 'embed' returning 1")
        _embed(cold)
        assert _index(cold) == {table: [] for table in INDEX_TABLES}

    def test_a_turn_that_another_row_cites_stays_through_a_purge(self, cold: Cold) -> None:
        """One of the two rows a turn gave is purged: the turn is still evidence of the other."""
        _learn(cold, "I play the cello", "*I am allergic to penicillin", archived=False)
        cold.rows("update memoryos.knowledge_source set seq = 1 returning 1")
        cold.at(FADED)
        _sweep(cold)
        cold.at(GRACE_OVER)
        _sweep(cold)
        assert cold.rows("select count(*) from memoryos.turn_left") == [(0,)]
        assert [kind for kind, _ in _index(cold)["embedding"]].count("turn") == 2

    def test_restoring_takes_the_mark_away(self, cold: Cold) -> None:
        """A turn is marked while it is out of recall, and not a moment longer."""
        _learn(cold, "residence=Fukuoka", day=0)
        _learn(cold, "residence=Osaka", day=1)
        marks = "select seq, left_at = memoryos.now() from memoryos.turn_left order by seq"
        cold.at(FADED)
        _sweep(cold)
        assert cold.rows(marks) == [(1, True), (2, True)]
        restore_knowledge(cold.parts, cold.tenant_id, _knowledge_id(cold, "Maya: the residence is Osaka"))
        assert cold.rows(marks) == []
        _embed(cold)
        assert [kind for kind, _ in _index(cold)["embedding"]] == ["knowledge", "turn", "turn"]


class TestPurge:
    def test_text_is_deleted_when_its_grace_is_over(self, cold: Cold) -> None:
        """Row, sources, verdicts, links and traits go; before the end of the grace they stay."""
        _learn(cold, "residence=Fukuoka", "!I wonder how tides work", day=0)
        _learn(cold, "residence=Osaka", day=1)
        cold.at(FADED)
        _sweep(cold)
        cold.at(FADED + 29)
        _sweep(cold)
        assert len(_statuses(cold)) == 3
        cold.at(GRACE_OVER)
        _sweep(cold)
        for table in ("knowledge", "knowledge_source", "verdict", "trait"):
            assert cold.rows(f"select count(*) from memoryos.{table}") == [(0,)], table
        assert _events(cold, "knowledge_purged") == 3
        assert cold.rows("select count(*) from memoryos.turn") == [(3,)]

    def test_kept_answers_go_with_what_they_said(self, cold: Cold) -> None:
        """No journaled answer of finished work repeats purged text; one that a crash may still need is kept."""
        _learn(cold, "I play the cello")
        assert {task for (task,) in cold.rows(ANSWER)} == {"distill", "merge", "embed"}
        cold.at(FADED)
        _sweep(cold)
        assert cold.rows("select count(*) from memoryos.llm_call") == [(3,)]
        cold.rows("update memoryos.work set state = 'ready' where kind = 'merge' returning 1")
        cold.at(GRACE_OVER)
        _sweep(cold)
        assert cold.rows("select task from memoryos.llm_call") == [("merge",)]
        cold.rows("update memoryos.work set state = 'done' where kind = 'merge' returning 1")
        _learn(cold, "I had soup", day=GRACE_OVER)
        cold.at(GRACE_OVER + FADED)
        _sweep(cold)
        cold.at(GRACE_OVER + GRACE_OVER)
        _sweep(cold)
        assert cold.rows("select task from memoryos.llm_call") == []

    def test_a_trait_keeps_what_evidence_is_left(self, cold: Cold) -> None:
        """One of two findings is purged: the trait cites the other."""
        _learn(cold, "!I wonder how tides work", day=0)
        _learn(cold, "!*I read about volcanoes every single day", day=1)
        cold.rows("update memoryos.knowledge set forget_at = null where content like 'I read%' returning 1")
        cold.at(FADED)
        _sweep(cold)
        cold.at(GRACE_OVER)
        _sweep(cold)
        kept = _knowledge_id(cold, "I read about volcanoes every single day")
        assert cold.rows("select knowledge_ids from memoryos.trait") == [([kept],)]

    def test_a_restored_row_is_not_purged(self, cold: Cold) -> None:
        """Restoring ends the grace: at its former end the row is live."""
        _learn(cold, "I play the cello")
        cold.at(FADED)
        _sweep(cold)
        restore_knowledge(cold.parts, cold.tenant_id, _any_forgotten(cold))
        _embed(cold)
        cold.at(GRACE_OVER)
        _sweep(cold)
        assert cold.live() == ["I play the cello"]


class TestBrake:
    def test_too_much_at_once_deletes_nothing_and_alarms(self, stack: Stack) -> None:
        """Six of six rows due with a brake at five: no row changes, one event says how many."""
        cold = Cold(stack, policy=Policy(forget_brake_min_rows=5))
        cold.at(0)
        _learn(cold, *(f"statement number {n}" for n in range(6)))
        before = _index(cold)
        cold.at(FADED)
        _sweep(cold)
        _sweep(cold)
        assert len(cold.live()) == 6
        assert _index(cold) == before
        assert cold.rows("select amount from memoryos.event where kind = 'forget_braked'") == [(6.0,)]

    def test_a_braked_scope_is_not_looked_at_every_few_seconds(self, stack: Stack) -> None:
        """Fifty sweeps in a row run it once; it is looked at again after its rest, or at once when it is owed."""
        cold = Cold(stack, policy=Policy(forget_brake_min_rows=5))
        cold.at(0)
        _learn(cold, *(f"statement number {n}" for n in range(6)))
        cold.at(FADED)
        executions = "select executions from memoryos.work where kind = 'forget'"
        _due_sweeps(cold, 50)
        assert cold.rows(executions) == [(1,)]
        cold.rows(
            "update memoryos.work set run_after = run_after - interval '1 hour' where kind = 'forget' returning 1"
        )
        _due_sweeps(cold, 50)
        assert cold.rows(executions) == [(2,)]
        _sweep(cold)
        assert cold.rows(executions) == [(3,)]

    def test_a_sweep_wakes_nobody_for_a_pinned_row(self, cold: Cold) -> None:
        """What is pinned is not due, whatever date it has."""
        _learn(cold, "I play the cello")
        cold.rows("update memoryos.knowledge set pinned_at = memoryos.now() returning 1")
        cold.at(FADED)
        assert owe_due(cold.stack.ledger_database, name="forget") == 0

    def test_a_braked_sweep_purges_nothing_either(self, stack: Stack) -> None:
        """A clock that jumped must not delete what is still in its grace."""
        cold = Cold(stack, policy=Policy(forget_brake_min_rows=2))
        cold.at(0)
        _learn(cold, "I play the cello")
        cold.at(FADED)
        _sweep(cold)
        _learn(cold, "statement one", "statement two", day=FADED)
        cold.at(FADED * 2)
        _sweep(cold)
        assert len(_statuses(cold)) == 3

    def test_a_preview_says_what_would_be_done(self, cold: Cold) -> None:
        """The dry run counts what the run then takes, and changes nothing."""
        _learn(cold, "I play the cello", "*I am allergic to penicillin")
        cold.at(FADED)
        maya = scope_id(cold.tenant_id, "maya", "companion")
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            preview = preview_forgetting(cold.parts, connection, cold.tenant_id, maya)
        assert (preview.assessment.due_rows, preview.assessment.live_rows, preview.stops) == (1, 2, False)
        assert len(cold.live()) == 2
        _sweep(cold)
        assert _events(cold, "knowledge_forgotten") == 1

    def test_a_tenant_on_hold_forgets_nothing(self, cold: Cold) -> None:
        """A hold stops forgetting and purging."""
        _learn(cold, "I play the cello")
        with cold.stack.owner.transaction(cold.tenant_id) as connection:
            connection.exec_driver_sql("update memoryos.tenant set on_hold = true")
        cold.at(FADED)
        _sweep(cold)
        assert cold.live() == ["I play the cello"]


class TestRestore:
    def test_a_live_row_needs_no_restoring(self, cold: Cold) -> None:
        """Restoring what is not forgotten changes nothing; restoring what is not there is an error."""
        _learn(cold, "I play the cello")
        assert not restore_knowledge(cold.parts, cold.tenant_id, _knowledge_id(cold, "I play the cello"))
        with pytest.raises(NotFoundError):
            restore_knowledge(cold.parts, cold.tenant_id, mint_id())

    def test_a_restored_row_yields_to_newer_truth(self, cold: Cold) -> None:
        """Osaka was forgotten, Kobe was said since: Osaka comes back as history, Kobe stays."""
        _learn(cold, "residence=Osaka", day=0)
        cold.at(FADED)
        _sweep(cold)
        _learn(cold, "residence=Kobe", day=FADED)
        restore_knowledge(cold.parts, cold.tenant_id, _knowledge_id(cold, "Maya: the residence is Osaka"))
        assert [status for _, status in _statuses(cold)] == ["superseded", "active"]

    def test_a_restored_row_retires_older_truth(self, cold: Cold) -> None:
        """Osaka was forgotten, an import says Fukuoka was earlier: with Osaka back, Fukuoka is history."""
        _learn(cold, "residence=Osaka", day=0)
        cold.at(FADED)
        _sweep(cold)
        _learn(cold, "residence=Fukuoka", day=-700, conversation="import")
        restore_knowledge(cold.parts, cold.tenant_id, _knowledge_id(cold, "Maya: the residence is Osaka"))
        _embed(cold)
        assert cold.live() == ["Maya: the residence is Osaka"]
        knowledge = [owner for kind, owner in _index(cold)["embedding"] if kind == "knowledge"]
        assert knowledge == [_knowledge_id(cold, "Maya: the residence is Osaka")]

    def test_the_same_statement_told_again_stays_one(self, cold: Cold) -> None:
        """Forgotten, told again, restored: one live row."""
        _learn(cold, "I play the cello", day=0)
        old = _knowledge_id(cold, "I play the cello")
        cold.at(FADED)
        _sweep(cold)
        _learn(cold, "I play the cello", day=FADED, conversation="two")
        restore_knowledge(cold.parts, cold.tenant_id, old)
        assert cold.live() == ["I play the cello"]

    def test_the_same_statement_imported_from_earlier_yields(self, cold: Cold) -> None:
        """Forgotten, an older session says the same, restored: the row said last is live, the other is history."""
        _learn(cold, "I play the cello", day=5)
        old = _knowledge_id(cold, "I play the cello")
        cold.at(FADED + 5)
        _sweep(cold)
        _learn(cold, "I play the cello", day=0, conversation="import")
        restore_knowledge(cold.parts, cold.tenant_id, old)
        live = cold.rows("select knowledge_id from memoryos.knowledge where status = 'active'")
        assert live == [(old,)]
