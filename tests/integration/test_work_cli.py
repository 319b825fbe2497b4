"""`memoryos work show` tells of any row, in words, what it waits for; `work limits` what providers may be asked."""

import json
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from memoryos_pipeline.cli.main import app
from memoryos_pipeline.store.heartbeats import beat
from memoryos_pipeline.store.tenants import mint_key
from memoryos_pipeline.store.vigilance import pause_kind
from tests.conftest import Stack
from tests.integration.readmodels.past import Past, live_a_past


@pytest.fixture
def past(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Past:
    """A memory with a past, and an environment that points at it."""
    for role in ("owner", "ledger"):
        monkeypatch.setenv(f"MEMORYOS_{role.upper()}_URL", stack.url(role))
    monkeypatch.setenv("MEMORYOS_API_KEY", mint_key(stack.owner, stack.tenant_id))
    return live_a_past(stack.app, stack.tenant_id)


def _set(stack: Stack, kind: str, change: str) -> int:
    with stack.owner.transaction(stack.tenant_id) as connection:
        statement = f"update memoryos.work set {change} where kind = '{kind}' returning work_id"
        return int(connection.execute(text(statement)).scalars().all()[0])


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["work", "show", *arguments], env={"COLUMNS": "200"})


def _shown(work_id: int) -> dict[str, Any]:
    result = _run(str(work_id), "--json")
    assert result.exit_code == 0, result.output
    shown: dict[str, Any] = json.loads(result.stdout)
    return shown


OPEN = "state = 'ready', finished_at = null"
READY = f"{OPEN}, run_after = clock_timestamp() - interval '1 minute'"
LATER = f"{OPEN}, run_after = clock_timestamp() + interval '1 hour'"
RUNG = f"{READY}, enqueued_at = clock_timestamp() - interval '1 minute'"


class TestWorkShow:
    def test_says_by_which_message_and_why_it_failed(self, stack: Stack, past: Past) -> None:
        """The Celery id leads to Flower, and the last error is there before anything is given up."""
        task = "8d5b0f3e-1111-4222-8333-944445555666"
        work_id = _set(stack, "merge", f"{LATER}, task_id = '{task}', last_error_class = 'transient', last_error = 'E'")

        assert (_shown(work_id)["task_id"], _shown(work_id)["last_error"]) == (task, "E")
        assert task in _run(str(work_id)).output
        assert "transient: E" in _run(str(work_id)).output

    def test_says_that_its_kind_is_paused(self, stack: Stack, past: Past) -> None:
        """Whoever looks at a row that does not move learns who stopped it and how to let it go on."""
        work_id = _set(stack, "merge", READY)
        with stack.ledger_database.across_tenants() as connection:
            pause_kind(connection, "merge", paused_by="operator", reason="a bad upload")

        assert _shown(work_id)["waits_for"] == (
            "waits for an operator: merge work is paused (a bad upload); `memoryos work resume merge`"
        )

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ("state = 'done'", "nothing: it is done"),
            ("state = 'cancelled'", "nothing: it was discarded"),
            (f"{LATER}, last_error_class = 'transient', attempts = 1", "waits for its next try at "),
            (LATER, "waits for its time at "),
            ("state = 'leased', owner = 'host:7', lease_until = now() + interval '1 hour'", "leased by host:7 until "),
            ("state = 'leased', owner = 'host:7', lease_until = now() - interval '1 hour'", "its lease by host:7 ran"),
            (f"{READY}, attempts = 5", "no try is left; waits for the relay"),
            (READY, "waits for the relay: none has been seen, and for a worker of queue merge: none has been seen"),
            (RUNG, "waits for a worker of queue merge: none has been seen (rung for at "),
            ("state = 'dead', attempts = 5, last_error_class = 'permanent'", "given up after 5 of 5 tries (permanent)"),
        ],
    )  # fmt: skip
    def test_says_what_it_waits_for(self, stack: Stack, past: Past, change: str, words: str) -> None:
        """Every state has its words, in both forms."""
        work_id = _set(stack, "merge", change)

        assert _shown(work_id)["waits_for"].startswith(words)
        assert words in _run(str(work_id)).output

    def test_counts_on_who_was_seen(self, stack: Stack, past: Past) -> None:
        """With a live relay and worker nobody is missed; silent ones are said to be silent."""
        work_id = _set(stack, "merge", RUNG)
        for role in ("relay", "worker"):
            beat(stack.ledger_database, f"{role}@test", role, completed=1)
        _set(stack, "summarize", "finished_at = clock_timestamp()")
        alive = _shown(work_id)["waits_for"]
        with stack.owner.across_tenants() as connection:
            connection.execute(text("update memoryos.heartbeat set beat_at = clock_timestamp() - interval '5 minutes'"))

        assert alive.startswith("waits for a worker of queue merge, rung for at ")
        assert "none has been seen for 5 min" in _shown(work_id)["waits_for"]

    def test_notices_a_queue_nobody_serves(self, stack: Stack, past: Past) -> None:
        """Workers live, and none has touched this queue since the doorbell."""
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.work set finished_at = clock_timestamp() - interval '1 hour'"))
        work_id = _set(stack, "summarize", RUNG.replace(", finished_at = null", ""))
        beat(stack.ledger_database, "worker@test", "worker", completed=1)

        assert "none has taken anything of this queue since" in _shown(work_id)["waits_for"]

    def test_says_that_it_rests(self, stack: Stack, past: Past) -> None:
        """A braked sweep rests until its moment, or as long as the tenant is on hold."""
        work_id = _set(stack, "merge", "kind = 'forget', state = 'done', run_after = now() + interval '1 hour'")
        braked = _shown(work_id)["waits_for"]
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.tenant set on_hold = true"))

        assert braked.startswith("resting until ")
        assert "(brake)" in braked
        assert "(the tenant is on hold)" in _shown(work_id)["waits_for"]

    def test_names_the_page_it_is_blocked_behind(self, stack: Stack, past: Past) -> None:
        """Pages are taken in order: the first that holds up the others is named, dead ones are passed over."""
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.scope set merged_ordinal = 0"))
            connection.execute(text("update memoryos.page set extracted_at = null"))
        merge = _set(stack, "merge", READY)
        _set(stack, "distill", READY)
        blocked = _shown(merge)["in_line"]
        distill = _set(stack, "distill", "state = 'dead'")

        assert blocked[0].startswith(
            f"blocked behind page {past.page} (turns 1 to 5 of c1), whose distillation is ready"
        )
        assert _shown(merge)["in_line"] == [
            f"passes over page {past.page} (turns 1 to 5 of c1), whose distillation is dead: work {distill}"
        ]

    def test_names_the_summary_a_segment_waits_for(self, stack: Stack, past: Past) -> None:
        """A page without a summary holds up the segments behind it."""
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text(
                "update memoryos.page set extract_ordinal = null, extracted_at = null, summarized_at = null"
            ))  # fmt: skip
        segment = _set(stack, "merge", f"kind = 'segment', {READY}")
        _set(stack, "summarize", READY)
        waiting = _shown(segment)["in_line"]
        _set(stack, "summarize", "state = 'dead'")

        assert "whose summary is ready" in waiting[0]
        assert "whose summary is dead" in _shown(segment)["in_line"][0]

    def test_shows_the_row_and_its_dead_letters(self, stack: Stack, past: Past) -> None:
        """Attempts, fence, error class, and every time it was given up."""
        shown = _shown(_set(stack, "heat", "attempts = 5, executions = 7, fence = 1, last_error_class = 'permanent'"))

        assert (shown["attempts"], shown["executions"], shown["fence"], shown["queue"]) == (5, 7, 1, "heat")
        assert (shown["tenant"], shown["user_id"], shown["task"]) == ("test", "maya", "memoryos.heat")
        assert [letter["error"] for letter in shown["dead_letters"]] == ["canary"]
        assert "given up at" in _run(str(shown["work_id"])).output

    def test_an_unknown_id_ends_with_a_sentence(self, past: Past) -> None:
        """No traceback."""
        result = _run("999999")

        assert result.exit_code == 1
        assert result.stderr == "memoryos: there is no work 999999\n"


class TestLimits:
    @pytest.mark.usefixtures("past")
    def test_what_is_bound_is_shown(self) -> None:
        """None at first; then what was set, by provider, as a table and as JSON."""
        invoke = CliRunner().invoke
        assert "There is no limit" in invoke(app, ["work", "limits"]).stdout
        assert invoke(app, ["work", "limit", "--provider", "anthropic", "--per-minute", "7"]).exit_code == 0
        (limit,) = json.loads(invoke(app, ["work", "limits", "--json"]).stdout)["limits"]

        assert (limit["provider"], limit["calls_per_minute"], limit["minute_calls"]) == ("anthropic", 7, 0)
        assert "anthropic" in invoke(app, ["work", "limits"]).stdout
