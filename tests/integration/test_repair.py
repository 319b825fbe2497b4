"""What can be mended is mended once; what cannot is said, and nothing is made up."""

import json
from dataclasses import astuple
from typing import Any

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner

from memoryos_pipeline.cli import doctor
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.turn_marks import MARKS_VERSION, read_marks
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store import marks
from memoryos_pipeline.store.repair import Mended, repair_leases, repair_tenant
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.builders import claim_due, close, numbered, record, rows
from tests.conftest import Stack
from tests.integration.readmodels.past import Past, live_a_past
from tests.integration.test_invariants import FAULTS

BEYOND_REPAIR = {
    "a turn is gone", "the counter ran ahead", "a page is in two tiers", "pages start late", "pages overlap",
    "a statement cites nothing", "a merged page is cited by nothing", "a distilled page says nothing",
    "two active heads", "versions go round", "a replaced version is active", "work is past due",
    "an erased user is back", "pinned and forgotten",
}  # fmt: skip
"""Faults whose mending needs a backup, a judgement, or a worker that runs."""


def _run(stack: Stack, past: Past, statement: str) -> None:
    with stack.owner.transaction(stack.tenant_id) as connection:
        connection.execute(text(statement), past.values())


def _repair(stack: Stack) -> list[Mended]:
    leases = [mended for _, mended in repair_leases(stack.ledger_database)]
    return leases + repair_tenant(stack.owner, stack.tenant_id)


def _broken(stack: Stack) -> set[str]:
    with stack.app.transaction(stack.tenant_id) as connection:
        return {violation.invariant for violation in find_violations(connection, stack.tenant_id)}


class TestRepair:
    def test_a_whole_memory_needs_none(self, stack: Stack) -> None:
        """Nothing is mended where nothing is broken."""
        live_a_past(stack.app, stack.tenant_id)

        assert _repair(stack) == []

    @pytest.mark.parametrize(
        ("invariant", "fault", "statement"), FAULTS, ids=[fault.replace(" ", "-") for _, fault, _ in FAULTS]
    )
    def test_a_fault_is_mended_once_or_still_told(
        self, stack: Stack, invariant: str, fault: str, statement: str
    ) -> None:
        """Every seed of the invariants: afterwards it is gone or still reported, and a second run mends nothing."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, statement)
        mended = _repair(stack)

        assert (invariant in _broken(stack)) == (fault in BEYOND_REPAIR)
        if fault not in BEYOND_REPAIR:
            assert mended
            assert all(each.sentence.endswith(".") for each in mended)
            assert _broken(stack) == set()
        assert _repair(stack) == []

    @pytest.mark.parametrize(
        ("statement", "what", "state"),
        [
            ("delete from memoryos.work where kind = 'summarize'", "missing work", ("summarize", "ready")),
            ("delete from memoryos.work where subject_key like 'turns:%'", "missing work", ("embed", "ready")),
            ("delete from memoryos.work where subject_key like 'summary:%'", "missing work", ("embed", "ready")),
            ("delete from memoryos.work where kind = 'distill'", "missing work", ("distill", "ready")),
            ("update memoryos.scope set merged_ordinal = 0", "missing work", ("merge", "ready")),
            (
                "update memoryos.page set extract_ordinal = null, extracted_at = null, extracted_by = null,"
                " knowledge_count = null",
                "missing work",
                ("segment", "ready"),
            ),
        ],
        ids=["summarize", "embed-turns", "embed-summary", "distill", "merge", "segment"],
    )
    def test_missing_work_is_owed(self, stack: Stack, statement: str, what: str, state: tuple[str, str]) -> None:
        """The row is there afterwards, ready for a worker, and is not owed a second time."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, statement)

        assert what in {each.what for each in _repair(stack)}
        assert state in rows(stack, "select kind, state from memoryos.work")
        assert _repair(stack) == []

    def test_a_segment_waits_for_the_page_before(self, stack: Stack) -> None:
        """Pages behind one that is not summarized yet wait for it: no work is missing then."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "update memoryos.page set extract_ordinal = null, extracted_at = null, extracted_by = null")
        _run(stack, past, "update memoryos.work set state = 'ready', finished_at = null where kind = 'embed'")

        assert [each for each in _repair(stack) if "segment" in each.sentence] == []

    def test_merging_passes_over_what_was_given_up(self, stack: Stack) -> None:
        """A page whose distillation is dead does not hold up the line; merging is owed to pass it."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "update memoryos.scope set extract_ordinal = 2")
        _run(stack, past, "update memoryos.page set extract_ordinal = 2, extracted_at = null, extracted_by = null")
        _run(stack, past, "update memoryos.work set state = 'dead', last_error_class = 'permanent'"
                          " where kind = 'distill'")  # fmt: skip
        _run(stack, past, "insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)"
                          " select tenant_id, work_id, 1, 'permanent', 'no'"
                          " from memoryos.work where kind = 'distill'")  # fmt: skip
        _run(stack, past, "update memoryos.work set state = 'done' where kind in ('merge', 'segment')")

        assert any(each.sentence.startswith("The merge work") for each in _repair(stack))

    def test_a_stranded_lease_is_taken_back(self, stack: Stack) -> None:
        """Ready again with its attempts; one without a try left is buried with a reason. A live lease is left alone."""
        past = live_a_past(stack.app, stack.tenant_id)
        lease = "update memoryos.work set state = 'leased', owner = 'gone', lease_until = clock_timestamp() + interval"
        _run(stack, past, f"{lease} '-1 s', attempts = 1 where kind = 'merge'")
        _run(stack, past, f"{lease} '-1 s', attempts = 5 where kind = 'distill'")
        _run(stack, past, f"{lease} '1 hour' where kind = 'summarize'")

        assert [each.what for each in _repair(stack)] == ["stranded lease"] * 2
        states = dict(rows(stack, "select kind, state from memoryos.work"))
        assert [states[kind] for kind in ("merge", "distill", "summarize")] == ["ready", "dead", "leased"]
        assert _repair(stack) == []

    @pytest.mark.parametrize("closed", [False, True], ids=["over-capacity", "closed"])
    def test_pages_that_were_never_sealed_are_owed(self, stack: Stack, closed: bool) -> None:
        """A tail over capacity or of a closed conversation without its work is owed, and then really sealed."""
        conversation = record(stack, *numbered(4 if closed else 13))
        if closed:
            close(stack, conversation)
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("delete from memoryos.work where kind = 'advance'"))
        mended = _repair(stack)
        parts = Parts(stack.app, HashingEmbedder(), ExtractiveModel(HashingEmbedder()))
        for lease in claim_due(stack):
            STAGES[lease.kind](parts, lease)

        assert [each.what for each in mended] == ["never sealed"]
        assert rows(stack, "select sealed_through from memoryos.conversation") == [(4 if closed else 5,)]
        assert _repair(stack) == []

    def test_a_tail_within_capacity_is_left_alone(self, stack: Stack) -> None:
        """What is hot by right is not sealed."""
        record(stack, *numbered(12))

        assert _repair(stack) == []

    @pytest.mark.parametrize(
        ("column", "wrong", "right"), [("indexed_through", 2, 5), ("assigned_through", 3, 0), ("sealed_through", 6, 5)]
    )
    def test_a_watermark_is_counted_again(self, stack: Stack, column: str, wrong: int, right: int) -> None:
        """Counters of a conversation follow from its pages."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, f"update memoryos.conversation set {column} = {wrong}")

        assert [each.what for each in _repair(stack)] == ["watermark"]
        assert rows(stack, f"select {column} from memoryos.conversation") == [(right,)]
        assert _repair(stack) == []

    def test_what_was_owed_is_really_mended(self, stack: Stack) -> None:
        """The work that repair owes brings the index back whole."""
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "delete from memoryos.embedding where owner_kind in ('turn', 'page')")
        _repair(stack)
        parts = Parts(stack.app, HashingEmbedder(), ExtractiveModel(HashingEmbedder()))
        for lease in claim_due(stack):
            if lease.kind == "embed":
                STAGES[lease.kind](parts, lease)

        assert rows(stack, "select owner_kind, count(*) from memoryos.embedding where owner_kind in ('turn', 'page')"
                           " group by owner_kind order by owner_kind") == [("page", 1), ("turn", 5)]  # fmt: skip
        assert "I5" not in _broken(stack)

    def test_turns_read_by_older_rules_are_read_again(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Batch after batch, until every turn has the marks that reading it now gives; then nothing is left to do."""
        monkeypatch.setattr(marks, "BATCH", 2)
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "update memoryos.turn set content = 'When does it begin?' where seq = 2")
        _run(stack, past, "insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms,"
                          " marks_version) select tenant_id, scope_id, 'turn', turn_id, 1, 0 from memoryos.turn"
                          " where seq <= 5")  # fmt: skip
        mended = [each for each in repair_tenant(stack.owner, stack.tenant_id) if each.what == "marks"]
        found = rows(
            stack,
            "select t.content, l.asks_only, l.ends_asking, l.tells_time, l.marks_version from memoryos.posting_length l"
            " join memoryos.turn t on t.turn_id = l.owner_id where l.owner_kind = 'turn' order by t.seq",
        )

        assert [each.subject for each in mended] == [str(len(found))]
        assert len(found) > 2 * marks.BATCH
        assert [row[1:4] for row in found] == [astuple(read_marks(row[0])) for row in found]
        assert {row[4] for row in found} == {MARKS_VERSION}
        assert found[1][1:3] == (True, True)
        assert marks.read_again(stack.owner, stack.tenant_id) == 0

    def test_another_tenant_is_left_alone(self, stack: Stack) -> None:
        """Mending one tenant touches no other."""
        live_a_past(stack.app, stack.tenant_id)
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        live_a_past(stack.app, other, user_id="noah")
        with stack.owner.transaction(other) as connection:
            connection.execute(text("update memoryos.conversation set indexed_through = 2"))

        assert repair_tenant(stack.owner, stack.tenant_id) == []
        assert [each.what for each in repair_tenant(stack.owner, other)] == ["watermark"]


class TestDoctorRepair:
    def _doctor(self, *arguments: str) -> Any:
        app = typer.Typer()
        app.command()(doctor.doctor)
        return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "220"})

    def test_shows_what_was_mended_and_what_is_left(
        self, stack: Stack, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A table and JSON; the second run mends nothing, and what needs a person stays told."""
        for role in ("owner", "ledger"):
            monkeypatch.setenv(f"MEMORYOS_{role.upper()}_URL", stack.url(role))
        monkeypatch.setenv("MEMORYOS_BROKER_URL", valkey.url)
        monkeypatch.setenv("MEMORYOS_API_KEY", mint_key(stack.owner, stack.tenant_id))
        past = live_a_past(stack.app, stack.tenant_id)
        _run(stack, past, "update memoryos.conversation set indexed_through = 2")
        _run(stack, past, "delete from memoryos.turn where seq = 6")
        assert "mended" not in json.loads(self._doctor("--json").stdout)
        shown = self._doctor("--repair").stdout
        report = json.loads(self._doctor("--repair", "--json").stdout)

        assert "is indexed through turn 5" in shown
        assert "what cannot be mended here" in shown
        assert report["mended"] == []
        assert [row["invariant"] for row in report["violations"]] == ["I2"]
        assert "Nothing was mended." in self._doctor("--repair").stdout
