"""What operators read of the whole system: cheap, true, and without a word of any tenant."""

import re
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from sqlalchemy import text
from starlette.testclient import TestClient
from typer.testing import CliRunner

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.cli.main import app as command
from memoryos_pipeline.readmodels.scheduled_doctor import last_run, run_doctor
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.retention import prune
from memoryos_pipeline.store.sweeps import take_slot
from memoryos_pipeline.store.synthetic_ledger import fill_ledger
from memoryos_pipeline.store.tenants import mint_key
from tests.builders import create_scope, record, rows
from tests.conftest import Stack

SLOT = datetime(2026, 3, 1, tzinfo=UTC)


class TestLag:
    def test_done_work_is_not_read(self, stack: Stack) -> None:
        """Done rows stay for ever, so how far the pipeline is must not cost by them."""
        fill_ledger(stack.app, stack.tenant_id, "embed", prefix="row", ready=20, done=30_000)
        with stack.owner.across_tenants() as connection:
            connection.execute(text("analyze memoryos.work"))
        query = "explain (analyze, buffers off, timing off, summary off) select * from memory_v1.pipeline_lag"
        with stack.app.transaction(stack.tenant_id) as connection:
            plan = "\n".join(connection.execute(text(query)).scalars())
            [lag] = connection.execute(text("select kind, ready, dead from memory_v1.pipeline_lag")).all()

        assert lag == ("embed", 20, 0)
        assert "Seq Scan on work" not in plan
        assert "Rows Removed by Filter: 30000" not in plan
        assert {"work_ready", "work_leased", "work_dead"} <= set(re.findall(r"work_\w+", plan))


ACCESSES = text("""
    insert into memoryos.access_event
        (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause, at, applied_at)
    select tenant_id, gen_random_uuid(), 'page', gen_random_uuid(), scope_id, 'injected', now() - interval '90 days',
           now() - days * interval '1 day'
      from (select * from memoryos.scope order by scope_id limit 1) scope
     cross join (values (null), (20), (40)) given(days)
""")
EVENTS = text("""
    insert into memoryos.event (tenant_id, kind, scope_id, recorded_at)
    select tenant_id, kind, scope_id, now() - days * interval '1 day'
      from (select * from memoryos.scope order by scope_id limit 1) scope
     cross join (values ('page_sealed', 1), ('page_sealed', 6), ('page_sealed', 8), ('knowledge_purged', 400))
           given(kind, days)
""")


class TestRetention:
    def test_only_what_had_its_effect_goes(self, stack: Stack) -> None:
        """An access that waits is kept however old it is; an event is kept for a week, and a purge for ever."""
        create_scope(stack)
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(ACCESSES)
            connection.execute(EVENTS)
        before = len(rows(stack, "select 1 from memoryos.event"))
        kept = prune(stack.ledger_database, access_days=0, event_days=0)
        removed = prune(stack.ledger_database, access_days=30, event_days=1)

        assert (kept, removed["access_event"]) == ({"access_event": 0, "event": 0}, 1)
        assert rows(stack, "select count(*) from memoryos.access_event where applied_at is null") == [(1,)]
        assert len(rows(stack, "select 1 from memoryos.event")) == before - removed["event"]
        assert rows(stack, "select count(*) from memoryos.event where recorded_at < now() - interval '7 days'") == [
            (1,)
        ]


class TestScheduledDoctor:
    def test_violations_of_all_tenants_are_counted(self, stack: Stack) -> None:
        """A run leaves one figure an invariant; a second scheduler finds the slot taken."""
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(
                text("""
                    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
                    values (:tenant, :tenant, 'maya', 'companion')
                """),
                {"tenant": stack.tenant_id},
            )
            connection.execute(
                text("""
                    insert into memoryos.work (tenant_id, kind, subject_key, scope_id, state)
                    values (:tenant, 'embed', 'x', :tenant, 'dead')
                """),
                {"tenant": stack.tenant_id},
            )
        slots = [take_slot(stack.ledger_database, "doctor", period_seconds=86_400) for _ in range(2)]
        assert slots[0] is not None
        run_doctor(stack.app, stack.ledger_database, slot=slots[0])

        with stack.ledger_database.across_tenants() as connection:
            run = last_run(connection)
        assert (slots[1], run is not None and (run.tenants, run.unchecked, run.violations)) == (None, (1, 0, {"I9": 1}))


class TestMetrics:
    def test_figures_name_no_tenant(self, stack: Stack) -> None:
        """Everything a monitor needs, and no word, name or id of anybody."""
        record(stack, "I moved to Lisbon", user_id="maya")
        run_doctor(stack.app, stack.ledger_database, slot=SLOT)
        answer = _client(stack).get("/metrics")

        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        names = set(re.findall(r"^# TYPE (\w+)", answer.text, re.MULTILINE))
        assert {
            "memoryos_work_oldest_ready_age_seconds", "memoryos_work_lease_expired", "memoryos_work_dead",
            "memoryos_fenced_total", "memoryos_republished_total", "memoryos_epoch_lost_total",
            "memoryos_invariant_violations_sum",
        } <= names  # fmt: skip
        assert all(re.fullmatch(r"#.*|\w+(\{[^}]*\})? [-+.e\d]+", line) for line in answer.text.splitlines())
        for word in (str(stack.tenant_id), "maya", "Maya", "Lisbon", "test"):
            assert word not in answer.text

    @pytest.mark.parametrize(
        ("scopes", "headers", "status"),
        [
            (("metrics",), {}, 200),
            (("read", "admin"), {}, 403),
            (None, {"x-forwarded-for": "203.0.113.9"}, 403),
            (None, {}, 200),
        ],
    )
    def test_who_may_look(
        self, stack: Stack, scopes: tuple[str, ...] | None, headers: dict[str, str], status: int
    ) -> None:
        """A key with the scope from anywhere; without a key this machine alone, and no proxy for somebody else."""
        key = {"x-api-key": mint_key(stack.owner, stack.tenant_id, scopes=scopes)} if scopes else {}

        assert _client(stack).get("/metrics", headers={**headers, **key}).status_code == status

    def test_another_machine_needs_a_key(self, stack: Stack) -> None:
        """Whoever asks from elsewhere is told which scope is missing."""
        client = TestClient(_app(stack), client=("203.0.113.9", 5000))

        assert (client.get("/metrics").status_code, "metrics" in client.get("/metrics").text) == (403, True)


class TestSwitch:
    def test_pausing_and_resuming_say_what_they_did(self, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Both can be repeated; a kind that does not exist is refused with those that do."""
        for role in ("owner", "ledger"):
            monkeypatch.setenv(f"MEMORYOS_{role.upper()}_URL", stack.url(role))
        monkeypatch.setenv("MEMORYOS_API_KEY", "mem_x")
        said = [
            CliRunner().invoke(command, ["work", *words]).output.strip()
            for words in (
                ("pause", "embed", "--reason", "a bad upload"),
                ("pause", "embed"),
                ("resume", "embed"),
                ("resume", "embed"),
            )
        ]
        unknown = CliRunner().invoke(command, ["work", "pause", "dream"])

        assert said == [
            "embed work is paused", "embed work was paused already", "embed work goes on", "embed work was not paused",
        ]  # fmt: skip
        assert (unknown.exit_code, "there is no kind of work 'dream'" in unknown.output) == (1, True)


def _app(stack: Stack) -> FastAPI:
    parts = Parts(stack.app, None, None)  # type: ignore[arg-type]
    return create_app(parts, ledger=stack.ledger_database)


def _client(stack: Stack) -> TestClient:
    return TestClient(_app(stack), client=("127.0.0.1", 5000))
