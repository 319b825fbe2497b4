"""What was given up is listed with its reason, tried again or let go; nothing stays dead once the fault clears."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner, Result

from memoryos_pipeline import pipeline
from memoryos_pipeline.cli import dead
from memoryos_pipeline.domain.errors import ModelRefusedError, NotFoundError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.dead_letters import discard, list_dead, replay
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.builders import create_scope, rows
from tests.conftest import Stack
from workers import envelope, runtime
from workers.runtime import LeaseKeeper, Runtime

app = typer.Typer()
app.add_typer(dead.app, name="dead")
SCOPE = text("insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id) values (:t, :s, 'noah', 'companion')")


class Fault:
    """A stage that refuses while the fault lasts and does its work afterwards."""

    def __init__(self) -> None:
        self.lasts = True

    def __call__(self, parts: Parts, lease: Lease) -> None:
        if self.lasts:
            raise ModelRefusedError("the model refuses page seven")
        with parts.database.transaction(lease.tenant_id) as connection:
            complete(connection, lease)


@pytest.fixture
def fault(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fault]:
    """A worker process whose embed and summarize stages are the fault."""
    keeper = LeaseKeeper(stack.ledger, stack.ledger_database, process="worker@test", lease_seconds=60)
    embedder = HashingEmbedder()
    parts = Parts(stack.app, embedder, ExtractiveModel(embedder))
    runtime._runtime[:] = [Runtime(os.getpid(), "test", Settings(), parts, stack.ledger, stack.ledger_database, keeper)]
    breaking = Fault()
    for kind in ("embed", "summarize"):
        monkeypatch.setitem(pipeline.STAGES, kind, breaking)
    yield breaking
    keeper.stop()
    runtime.forget_runtime()


def _owe(stack: Stack, kind: WorkKind, count: int, *, tenant: Any = None) -> list[int]:
    tenant_id, scope = tenant or (stack.tenant_id, create_scope(stack))
    owed = [Owed(kind, f"{kind}-{n}", scope) for n in range(count)]
    with stack.app.transaction(tenant_id) as connection:
        owe(connection, tenant_id, owed)
        found = connection.execute(text("select work_id from memoryos.work where kind = :kind"), {"kind": kind})
        return sorted(found.scalars())


def _dead(stack: Stack, *kinds: WorkKind, count: int = 2) -> list[int]:
    ids = [work_id for kind in kinds for work_id in _owe(stack, kind, count)]
    envelope.deliver(ids)
    return ids


def _other_tenant(stack: Stack) -> Any:
    tenant_id, scope = mint_id(), mint_id()
    create_tenant(stack.owner, tenant_id, "other")
    with stack.app.transaction(tenant_id) as connection:
        connection.execute(SCOPE, {"t": tenant_id, "s": scope})
    return tenant_id, scope


def _states(stack: Stack) -> dict[str, int]:
    query = "select state, count(*) from memoryos.work where kind in ('embed', 'summarize') group by state"
    return dict(rows(stack, query))


class TestReplay:
    def test_after_the_fault_everything_is_done(self, stack: Stack, fault: Fault) -> None:
        """Replay of all dead ends with 0 dead once the stage works."""
        ids = _dead(stack, WorkKind.EMBED, WorkKind.SUMMARIZE, count=3)
        assert _states(stack) == {"dead": 6}
        fault.lasts = False
        outcome = replay(stack.owner, stack.ledger_database, ids)
        envelope.deliver(ids)

        assert outcome.changed == ids
        assert _states(stack) == {"done": 6}
        assert list_dead(stack.ledger_database) == []

    def test_begins_with_the_first_attempt_and_is_noted(self, stack: Stack, fault: Fault) -> None:
        """Attempts are 0, the dead letter says when, the event log says that."""
        ids = _dead(stack, WorkKind.EMBED, count=1)
        replay(stack.owner, stack.ledger_database, ids)

        assert rows(
            stack, "select state, attempts, enqueued_at, finished_at from memoryos.work where kind = 'embed'"
        ) == [("ready", 0, None, None)]
        assert rows(stack, "select replayed_at is not null from memoryos.dead_letter") == [(True,)]
        assert rows(stack, "select kind, work_id from memoryos.event") == [("work_replayed", ids[0])]

    def test_twice_is_once(self, stack: Stack, fault: Fault) -> None:
        """A row that is not dead is left alone, and said."""
        ids = _dead(stack, WorkKind.EMBED, count=2)
        replay(stack.owner, stack.ledger_database, ids)
        again = replay(stack.owner, stack.ledger_database, ids)

        assert (again.changed, again.already) == ([], dict.fromkeys(ids, "ready"))
        assert rows(stack, "select count(*) from memoryos.event") == [(2,)]

    def test_a_row_that_fails_again_is_dead_again(self, stack: Stack, fault: Fault) -> None:
        """While the fault lasts, replay costs an attempt and keeps both reasons."""
        ids = _dead(stack, WorkKind.EMBED, count=1)
        replay(stack.owner, stack.ledger_database, ids)
        envelope.deliver(ids)

        assert _states(stack) == {"dead": 1}
        assert rows(stack, "select replayed_at is not null from memoryos.dead_letter order by fence") == [
            (True,), (False,),
        ]  # fmt: skip

    def test_an_unknown_id_changes_nothing(self, stack: Stack, fault: Fault) -> None:
        """All or none: a slip in one id leaves the others as they are."""
        ids = _dead(stack, WorkKind.EMBED, count=1)
        with pytest.raises(NotFoundError, match="there is no work 999999"):
            replay(stack.owner, stack.ledger_database, [*ids, 999_999])

        assert _states(stack) == {"dead": 1}


class TestDiscard:
    def test_cancels_with_its_reason(self, stack: Stack, fault: Fault) -> None:
        """The row is over, the reason stands beside the first one, and an event tells of it. Twice is once."""
        ids = _dead(stack, WorkKind.EMBED, count=1)
        first = discard(stack.owner, stack.ledger_database, ids, reason="the page is a duplicate")
        again = discard(stack.owner, stack.ledger_database, ids, reason="once more")

        assert (first.changed, again.changed, again.already) == (ids, [], {ids[0]: "cancelled"})
        assert rows(stack, "select error_class, error from memoryos.dead_letter order by fence")[1:] == [
            ("discarded", "the page is a duplicate")
        ]
        assert rows(stack, "select kind from memoryos.event") == [("work_discarded",)]

    def test_wakes_who_waits_for_it(self, stack: Stack, fault: Fault) -> None:
        """Segments take pages in order: they learn that one will never be summarized."""
        ids = _dead(stack, WorkKind.SUMMARIZE, count=1)
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("update memoryos.work set state = 'done' where kind = 'segment'"))
        discard(stack.owner, stack.ledger_database, ids, reason="no")

        assert rows(stack, "select state from memoryos.work where kind = 'segment'") == [("ready",)]

    def test_a_new_need_asks_anew(self, stack: Stack, fault: Fault) -> None:
        """What is owed again later runs again: a discarded row does not stand in its way for ever."""
        ids = _dead(stack, WorkKind.EMBED, count=1)
        discard(stack.owner, stack.ledger_database, ids, reason="no")
        _owe(stack, WorkKind.EMBED, 1)

        assert _states(stack) == {"ready": 1}


@pytest.fixture
def reach(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment points at this test's database."""
    for role in ("owner", "ledger"):
        monkeypatch.setenv(f"MEMORYOS_{role.upper()}_URL", stack.url(role))
    monkeypatch.setenv("MEMORYOS_API_KEY", mint_key(stack.owner, stack.tenant_id))


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["dead", *arguments], env={"COLUMNS": "200"})


def _json(*arguments: str) -> Any:
    result = _run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.usefixtures("reach")
class TestCommand:
    def test_lists_with_the_reason(self, stack: Stack, fault: Fault) -> None:
        """By kind and tenant; the reason is in words."""
        ids = _dead(stack, WorkKind.EMBED, WorkKind.SUMMARIZE, count=1)
        _other_tenant(stack)
        [row] = _json("list", "--kind", "embed")["dead"]

        assert (row["work_id"], row["tenant"], row["error_class"]) == (ids[0], "test", "permanent")
        assert row["error"] == "ModelRefusedError: the model refuses page seven"
        assert _json("list", "--tenant", "other")["dead"] == []
        assert "refuses page seven" in _run("list").output
        assert [each["error_class"] for each in _json("show", str(ids[0]))["letters"]] == ["permanent"]

    def test_replays_all_of_a_kind(self, stack: Stack, fault: Fault) -> None:
        """--all --kind touches that kind only, and counts."""
        _dead(stack, WorkKind.EMBED, WorkKind.SUMMARIZE, count=2)

        assert _json("replay", "--all", "--kind", "embed")["replayed"] == 2
        assert _json("replay", "--all", "--kind", "embed")["replayed"] == 0
        assert _states(stack) == {"ready": 2, "dead": 2}
        assert _json("discard", "--all", "--reason", "old")["discarded"] == 2
        assert "2 replayed" not in _run("replay", "--all").output

    def test_replays_all_of_a_tenant(self, stack: Stack, fault: Fault) -> None:
        """Another tenant's dead rows stay dead."""
        _dead(stack, WorkKind.EMBED, count=1)
        envelope.deliver(_owe(stack, WorkKind.EMBED, 1, tenant=_other_tenant(stack)))

        assert _json("replay", "--all", "--tenant", "other")["replayed"] == 1
        assert _states(stack) == {"dead": 1}

    def test_says_what_was_not_dead(self, stack: Stack, fault: Fault) -> None:
        """A named row that is ready is left alone, in words."""
        ids = _dead(stack, WorkKind.EMBED, count=1)
        _run("replay", str(ids[0]))

        assert "1 not dead but ready, left alone" in _run("replay", str(ids[0])).output

    @pytest.mark.parametrize(
        "arguments",
        [("replay",), ("replay", "5", "--all"), ("replay", "999999"), ("discard", "999999"), ("show", "999999"),
         ("list", "--kind", "dreams"), ("list", "--tenant", "nobody"), ("replay", "--all", "--tenant", "nobody")],
    )  # fmt: skip
    def test_errors_are_sentences(self, stack: Stack, arguments: tuple[str, ...]) -> None:
        """One line and status 1, no traceback."""
        result = _run(*arguments)

        assert result.exit_code == 1
        assert result.stderr.startswith("memoryos: ")
        assert result.stderr.count("\n") == 1
