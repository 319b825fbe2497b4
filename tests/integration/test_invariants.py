"""Every broken promise shows as a row, and a memory that is whole shows none."""

import pytest
from sqlalchemy import text

from memoryos_pipeline.readmodels.invariants import JournalEntry, Violation, compare_journal, find_violations
from tests.conftest import Stack
from tests.integration.readmodels.past import Past, live_a_past

FAULTS = [
    ("I2", "a turn is gone", "delete from memoryos.turn where tenant_id = :tenant and seq = 6"),
    ("I2", "the counter ran ahead", "update memoryos.conversation set next_seq = 9 where tenant_id = :tenant"),
    ("I3", "a sealed turn lies on no page", "update memoryos.page set last_seq = 4 where tenant_id = :tenant"),
    ("I3", "a page reaches into the tail", "update memoryos.page set last_seq = 6 where tenant_id = :tenant"),
    ("I3", "a page is in two tiers", "update memoryos.page set archived_at = now() where tenant_id = :tenant"),
    ("I4", "pages start late", "update memoryos.page set first_seq = 2 where tenant_id = :tenant"),
    (
        "I4",
        "pages overlap",
        "insert into memoryos.page (tenant_id, page_id, scope_id, conversation_id, first_seq, last_seq, first_turn_at,"
        " last_turn_at, lang) values (:tenant, :other, :scope, :conversation, 3, 5, now(), now(), 'en')",
    ),
    ("I5", "a turn has no vector", "delete from memoryos.embedding where owner_kind = 'turn'"),
    ("I5", "a live statement has no vector", "delete from memoryos.embedding where owner_id = :new"),
    ("I5", "a warm page has no vector", "delete from memoryos.embedding where owner_kind = 'page'"),
    ("I5", "a summary changed under its vector", "update memoryos.page set summary = 'another'"),
    ("I6", "a statement cites nothing", "delete from memoryos.knowledge_source where knowledge_id = :new"),
    ("I6", "a merged page is cited by nothing", "delete from memoryos.knowledge where tenant_id = :tenant"),
    (
        "I6",
        "a distilled page says nothing",
        "update memoryos.page set knowledge_count = null where tenant_id = :tenant",
    ),
    (
        "I6",
        "two active heads",
        "update memoryos.knowledge set status = 'active', superseded_by = null, retired_at = null"
        " where knowledge_id = :old",
    ),
    (
        "I6",
        "versions go round",
        "update memoryos.knowledge set status = 'superseded', superseded_by = :old, retired_at = now()"
        " where knowledge_id = :new",
    ),
    (
        "I6",
        "a replaced version is active",
        "update memoryos.knowledge set superseded_by = :other where knowledge_id = :new",
    ),
    ("I7", "nobody summarizes a page", "delete from memoryos.work where tenant_id = :tenant and kind = 'summarize'"),
    ("I7", "nobody embeds a page", "delete from memoryos.work where subject_key = 'turns:' || cast(:page as text)"),
    ("I7", "nobody distils a page", "delete from memoryos.work where tenant_id = :tenant and kind = 'distill'"),
    ("I7", "nobody merges", "update memoryos.scope set merged_ordinal = 0 where tenant_id = :tenant"),
    ("I7", "summarized without a summary", "update memoryos.page set summary = null where tenant_id = :tenant"),
    ("I7", "embedded without vectors", "update memoryos.page set indexed_at = null where tenant_id = :tenant"),
    ("I7", "distilled without a result", "update memoryos.page set extracted_at = null where tenant_id = :tenant"),
    (
        "I8",
        "work is past due",
        "update memoryos.work set state = 'ready', run_after = now() - interval '10 minutes' where kind = 'merge'",
    ),
    (
        "I8",
        "a lease ran out",
        "update memoryos.work set state = 'leased', lease_until = now() - interval '10 minutes' where kind = 'merge'",
    ),
    ("I9", "too many attempts", "update memoryos.work set attempts = 6 where tenant_id = :tenant and kind = 'merge'"),
    ("I9", "dead without a reason", "delete from memoryos.dead_letter where tenant_id = :tenant"),
    ("I12", "an archived page is searched", "update memoryos.page set tier = 'archived', archived_at = now()"),
    (
        "I12",
        "a vector without an owner",
        "update memoryos.embedding set owner_id = :other where owner_kind = 'segment'",
    ),
    (
        "I12",
        "forgotten words are searched",
        "update memoryos.knowledge set status = 'forgotten', forgotten_at = now(), purge_at = now()"
        " where knowledge_id = :new",
    ),
    (
        "I12",
        "an erased user is back",
        "insert into memoryos.deletion_ledger (tenant_id, subject_hash)"
        " values (:tenant, sha256(convert_to(cast(:tenant as text) || '|' || :user, 'UTF8')))",
    ),
    (
        "I15",
        "pinned and forgotten",
        "update memoryos.knowledge set status = 'forgotten', forgotten_at = now(), purge_at = now(), pinned_at = now()"
        " where knowledge_id = :other",
    ),
    (
        "I15",
        "forgotten for good without a date",
        "update memoryos.knowledge set status = 'forgotten', forgotten_at = now() where knowledge_id = :other",
    ),
]


def _run(stack: Stack, past: Past, statement: str) -> None:
    with stack.owner.transaction(stack.tenant_id) as connection:
        connection.execute(text(statement), past.values())


def _violations(stack: Stack, *, at_rest: bool = False) -> list[Violation]:
    with stack.app.transaction(stack.tenant_id) as connection:
        return find_violations(connection, stack.tenant_id, at_rest=at_rest)


class TestFindViolations:
    def test_a_whole_memory_has_none(self, stack: Stack) -> None:
        """Empty is good, also by the strict reading at rest."""
        live_a_past(stack.app, stack.tenant_id)

        assert _violations(stack, at_rest=True) == []

    @pytest.mark.parametrize(
        ("invariant", "statement"), [(name, sql) for name, _, sql in FAULTS], ids=[fault for _, fault, _ in FAULTS]
    )
    def test_a_fault_shows(self, stack: Stack, invariant: str, statement: str) -> None:
        """Each seeded fault makes its invariant speak, in a sentence."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, statement)
        found = [violation for violation in _violations(stack) if violation.invariant == invariant]

        assert found
        assert all(violation.subject and violation.sentence.endswith(".") for violation in found)

    @pytest.mark.parametrize("change", ["state = 'ready'", "state = 'leased', lease_until = now() + interval '1 hour'"])
    def test_work_under_way_counts_only_at_rest(self, stack: Stack, change: str) -> None:
        """A running pipeline may hold leases and have fresh work; a drained one may not."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, f"update memoryos.work set {change}, run_after = clock_timestamp() where kind = 'merge'")

        assert _violations(stack) == []
        assert [violation.invariant for violation in _violations(stack, at_rest=True)] == ["I8"]

    def test_a_purge_excuses_its_pages(self, stack: Stack) -> None:
        """A page whose statements were forgotten and purged is not a broken promise."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "delete from memoryos.embedding where owner_kind = 'knowledge'")
        _run(stack, past, "delete from memoryos.posting where owner_kind = 'knowledge'")
        _run(stack, past, "delete from memoryos.posting_length where owner_kind = 'knowledge'")
        _run(stack, past, "delete from memoryos.knowledge where tenant_id = :tenant")
        _run(
            stack,
            past,
            "insert into memoryos.event (tenant_id, kind, scope_id, subject_id)"
            " values (:tenant, 'knowledge_purged', :scope, :new)",
        )

        assert _violations(stack) == []


def _journal(count: int = 7) -> list[JournalEntry]:
    return [JournalEntry("maya", "companion", "c1", f"t{seq}", seq) for seq in range(1, count + 1)]


def _compare(stack: Stack, journal: list[JournalEntry]) -> tuple[list[str], list[str], list[str]]:
    with stack.app.transaction(stack.tenant_id) as connection:
        verdict = compare_journal(connection, stack.tenant_id, journal)
    lost, doubled, unexpected = (
        [name[3] for name in names] for names in (verdict.lost, verdict.doubled, verdict.unexpected)
    )
    return lost, doubled, unexpected


class TestCompareJournal:
    def test_what_was_acknowledged_is_there(self, stack: Stack) -> None:
        """Nothing lost, nothing doubled, nothing unexpected; an unknown outcome may be either."""
        live_a_past(stack.app, stack.tenant_id)
        never_answered = JournalEntry("maya", "companion", "c1", "t99", None)

        assert _compare(stack, [*_journal(), never_answered]) == ([], [], [])

    def test_a_missing_turn_is_lost(self, stack: Stack) -> None:
        """An acknowledged turn that is not in SQL is lost."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "delete from memoryos.turn where seq = 7")

        assert _compare(stack, _journal()) == (["t7"], [], [])

    def test_a_turn_at_another_place_is_lost(self, stack: Stack) -> None:
        """The acknowledged seq and hash are part of the promise."""
        live_a_past(stack.app, stack.tenant_id)
        moved = JournalEntry("maya", "companion", "c1", "t7", 8)
        changed = JournalEntry("maya", "companion", "c1", "t6", 6, b"another hash")

        assert _compare(stack, [*_journal(5), changed, moved]) == (["t6", "t7"], [], [])

    def test_a_copy_is_doubled(self, stack: Stack) -> None:
        """The same words, speaker and moment under a name nobody sent are the effect of doing it twice."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(
            stack,
            past,
            "insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id,"
            " body_sha256, role, speaker, content, lang, occurred_at, utc_offset_minutes)"
            " select tenant_id, conversation_id, 8, :other, scope_id, 'again', body_sha256, role, speaker, content,"
            " lang, occurred_at, 540 from memoryos.turn where seq = 7",
        )

        assert _compare(stack, _journal()) == ([], ["again"], [])

    def test_a_turn_nobody_sent_is_unexpected(self, stack: Stack) -> None:
        """Whatever is in SQL and in no journal is reported."""
        live_a_past(stack.app, stack.tenant_id)

        assert _compare(stack, _journal(6)) == ([], [], ["t7"])
