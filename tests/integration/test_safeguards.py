"""Each safeguard by itself: what would go wrong, and at once, if it were not there."""

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.domain.errors import FencedError
from memoryos_pipeline.domain.work import Lease, Owed, RetryDecision, WorkKind
from memoryos_pipeline.models.anthropic import AnthropicModel
from memoryos_pipeline.models.anthropic_client import AnthropicClient
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.summarize_page import summarize_page
from memoryos_pipeline.store.database import Database, try_again
from memoryos_pipeline.store.ledger import hold, owe
from memoryos_pipeline.store.publishing import reap_expired
from memoryos_pipeline.store.tenants import mint_key
from tests.builders import claim_due, create_scope, rows
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about
from tests.stub_server.server import StubServer

COUNT_TURNS = text("select count(*) from memoryos.turn")
REFUSE_COMMITS = text("""
    create function memoryos.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'the disk is full' using errcode = '53100'; end $$;
    create constraint trigger refuse_commits after insert on memoryos.turn deferrable initially deferred
        for each row execute function memoryos.refuse()
""")
BODY = {
    "user_id": "maya", "agent_id": "companion", "conversation_id": "c1", "client_turn_id": "t1", "role": "user",
    "content": "I live in Porto.", "occurred_at": "2026-05-04T18:02:00+09:00",
}  # fmt: skip


def _lease(stack: Stack, *, lease_seconds: float = 60) -> Lease:
    with stack.app.transaction(stack.tenant_id) as connection:
        owe(connection, stack.tenant_id, [Owed(WorkKind.HEAT, "one", create_scope(stack))])
    return claim_due(stack, lease_seconds=lease_seconds)[0]


class TestFence:
    def test_progress_of_a_late_worker_is_refused(self, stack: Stack) -> None:
        """Long work checks its fence with every part of it, not only with the last."""
        late = _lease(stack, lease_seconds=0)
        claim_due(stack)

        with pytest.raises(FencedError), stack.app.transaction(stack.tenant_id) as connection:
            hold(connection, late)

    def test_a_failure_of_a_late_worker_changes_nothing(self, stack: Stack) -> None:
        """Whoever lost the lease cannot give up what another is doing."""
        late = _lease(stack, lease_seconds=0)
        (current,) = claim_due(stack)
        decision = RetryDecision(dead=True, delay_seconds=0, burns_attempt=True)

        assert not stack.ledger.fail(late, decision, error_class="permanent", error="too late")
        query = "select state, fence, owner from memoryos.work"
        assert rows(stack, query) == [("leased", current.fence, "test")]

    def test_a_late_worker_hands_nothing_back(self, stack: Stack) -> None:
        """A graceful stop frees what is held, not what was lost."""
        late = _lease(stack, lease_seconds=0)
        claim_due(stack)
        stack.ledger.release([late])

        assert rows(stack, "select state, attempts from memoryos.work") == [("leased", 2)]


class TestGivingWay:
    def test_a_burial_holds_up_no_stage(self, stack: Stack) -> None:
        """A stage holds the work that a dead letter would wake: what ran out is taken back, the burial comes later."""
        scope = create_scope(stack)
        segment = Owed(WorkKind.SEGMENT, str(scope), scope)
        with stack.app.transaction(stack.tenant_id) as connection:
            owed = [segment, Owed(WorkKind.EMBED, "turns:page", scope), Owed(WorkKind.HEAT, "free", scope)]
            owe(connection, stack.tenant_id, owed, max_attempts=1)
            connection.execute(text("update memoryos.work set max_attempts = 5 where kind = 'heat'"))
        claim_due(stack, WorkKind.EMBED, lease_seconds=0)
        claim_due(stack, WorkKind.HEAT, lease_seconds=0)
        states = "select kind, state from memoryos.work where kind <> 'segment' order by kind"
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [segment])
            _reap(stack)
            assert rows(stack, states) == [("embed", "leased"), ("heat", "ready")]
        _reap(stack)

        assert rows(stack, states) == [("embed", "dead"), ("heat", "ready")]

    @pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
    def test_what_was_lost_to_others_is_done_again(self, sqlstate: str) -> None:
        """A deadlock, a serialization failure and a lock timeout rolled everything back: it is tried again."""
        lost = [_database_error(sqlstate), _database_error(sqlstate)]

        def transaction() -> str:
            if lost:
                raise lost.pop()
            return "done"

        assert try_again(transaction) == "done"

    def test_what_others_have_no_part_in_is_raised(self) -> None:
        """A broken rule is not broken less the second time, and there is an end to trying."""
        tries: list[str] = []

        def transaction(sqlstate: str) -> None:
            tries.append(sqlstate)
            raise _database_error(sqlstate)

        for sqlstate in ("23505", "40P01"):
            with pytest.raises(DBAPIError):
                try_again(partial(transaction, sqlstate))
        assert tries == ["23505", *["40P01"] * 5]


def _reap(stack: Stack) -> None:
    with stack.ledger_database.across_tenants() as connection:
        reap_expired(connection)


def _database_error(sqlstate: str) -> DBAPIError:
    return DBAPIError("statement", {}, psycopg.errors.lookup(sqlstate)())


class TestTenantSetting:
    def test_ends_with_its_transaction(self, stack: Stack) -> None:
        """A pooled connection forgets whom it served, after a commit and after a rollback."""
        _lease(stack)
        database = Database(stack.url("app"), pool_size=1)
        with database.transaction(stack.tenant_id) as connection:
            assert connection.execute(text("select count(*) from memoryos.work")).scalar_one() == 1
        with database.across_tenants() as connection:
            assert connection.execute(text("select count(*) from memoryos.work")).scalar_one() == 0
        with pytest.raises(DBAPIError), database.transaction(stack.tenant_id) as connection:
            connection.execute(text("select 1 / 0"))
        with database.across_tenants() as connection:
            assert connection.execute(text("select count(*) from memoryos.work")).scalar_one() == 0
        database.dispose()


class TestForcedRowSecurity:
    def test_the_owner_sees_one_tenant_at_a_time(self, stack: Stack) -> None:
        """Repairs and migrations cannot mix tenants by accident: without a tenant there is nothing to see."""
        Walk(stack).seal(*about("tennis"))
        with stack.owner.transaction(stack.tenant_id) as connection:
            assert connection.execute(COUNT_TURNS).scalar_one() == 5
        with stack.owner.across_tenants() as connection:
            assert connection.execute(COUNT_TURNS).scalar_one() == 0


@pytest.fixture
def provider() -> Iterator[StubServer]:
    """A model's provider that counts what it is asked."""
    with StubServer() as server:
        yield server


class TestJournal:
    @pytest.mark.parametrize(
        ("stage", "kind"), [(summarize_page, WorkKind.SUMMARIZE), (distill_page, WorkKind.DISTILL)]
    )
    def test_a_crash_after_the_answer_pays_once(
        self, stack: Stack, provider: StubServer, stage: Callable[[Parts, Lease], None], kind: WorkKind
    ) -> None:
        """The answer is kept before it is applied: whoever takes over applies it and asks nobody."""
        client = AnthropicClient(model="claude-stub", api_key="k", base_url=provider.url, deadline_seconds=20)
        walk = Walk(stack)
        (page,) = walk.seal(*about("tennis"))
        parts = Parts(stack.app, HashingEmbedder(), AnthropicModel(client))
        late = walk.claim(kind, str(page), lease_seconds=0)
        (current,) = stack.ledger.claim([late.work_id], owner="next", lease_seconds=60)
        with pytest.raises(FencedError):
            stage(parts, late)
        stage(parts, current)

        assert provider.calls == 1
        assert rows(stack, "select state from memoryos.work where work_id = :id", id=late.work_id) == [("done",)]


class TestAnswer:
    def test_a_202_leaves_after_the_commit(self, stack: Stack) -> None:
        """At the moment the first byte of the answer goes out, others see the turn."""
        seen: list[tuple[int, int]] = []

        def look(status: int) -> None:
            with stack.owner.transaction(stack.tenant_id) as connection:
                seen.append((status, connection.execute(COUNT_TURNS).scalar_one()))

        _post(stack, look)
        assert seen == [(202, 1)]

    def test_a_commit_that_fails_is_not_a_202(self, stack: Stack) -> None:
        """Everything went well until the commit: the sender is told to try again, and nothing is there."""
        with stack.owner.across_tenants() as connection:
            connection.execute(REFUSE_COMMITS)
        seen: list[int] = []
        _post(stack, seen.append)

        assert seen == [503]
        assert rows(stack, "select count(*) from memoryos.turn") == [(0,)]


def _post(stack: Stack, on_start: Callable[[int], None]) -> None:
    """Send one turn to the application as its server would, and call back when an answer begins."""
    app = create_app(Parts(stack.app, embedder=None, language_model=None))  # type: ignore[arg-type]
    key = mint_key(stack.owner, stack.tenant_id)
    headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/v1/turns",
        "raw_path": b"/v1/turns", "query_string": b"", "headers": headers, "scheme": "http",
        "server": ("test", 80), "client": ("test", 1), "root_path": "",
    }  # fmt: skip
    body = json.dumps(BODY).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            on_start(message["status"])

    asyncio.run(app(scope, receive, send))
