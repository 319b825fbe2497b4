"""Small builders of rows, for tests that need a past."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import event, text

from memoryos_pipeline.domain.ids import conversation_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.turns import NewTurn, TurnKind
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.clock import freeze_clock
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.tables import METADATA
from tests.conftest import Stack

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
READY = text("select work_id from memoryos.work where cast(:kind as text) is null or kind = :kind")

CLOSE = text("""
    update memoryos.conversation set closed_at = memoryos.now() where conversation_id = :conversation_id
""")


class RecordOptions(TypedDict, total=False):
    """How recorded turns may differ from the usual ones."""

    user_id: str
    conversation: str
    start: datetime
    first: int
    policy: Policy
    kind: TurnKind


SCOPE = text("""
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    values (:tenant_id, :scope_id, :user_id, :agent_id) on conflict do nothing
""")


def create_scope(stack: Stack, user_id: str = "maya", agent_id: str = "companion") -> UUID:
    """Create (once) and return the scope of a user and an agent."""
    scope = scope_id(stack.tenant_id, user_id, agent_id)
    values = {"tenant_id": stack.tenant_id, "scope_id": scope, "user_id": user_id, "agent_id": agent_id}
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(SCOPE, values)
    return scope


def record(stack: Stack, *contents: str, **options: Unpack[RecordOptions]) -> UUID:
    """Record turns a minute apart, speakers taking turns; return the conversation's id."""
    user_id, conversation = options.get("user_id", "maya"), options.get("conversation", "c1")
    start, first = options.get("start", START), options.get("first", 1)
    turns = [
        NewTurn(
            user_id=user_id,
            agent_id="companion",
            conversation_id=conversation,
            client_turn_id=f"t{first + n}",
            role="user" if n % 2 == 0 else "assistant",
            speaker="Maya" if n % 2 == 0 else "Companion",
            content=content,
            occurred_at=start + timedelta(minutes=n),
            kind=options.get("kind", "normal"),
        )
        for n, content in enumerate(contents)
    ]
    record_turns(stack.app, stack.tenant_id, turns, policy=options.get("policy", DEFAULT), max_attempts=5)
    return conversation_id(scope_id(stack.tenant_id, user_id, "companion"), conversation)


def close(stack: Stack, conversation: UUID, user_id: str = "maya") -> None:
    """Close a conversation, so that it is owed to be sealed whole."""
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(CLOSE, {"conversation_id": conversation})
        owed = Owed(WorkKind.ADVANCE, str(conversation), scope_id(stack.tenant_id, user_id, "companion"))
        owe(connection, stack.tenant_id, [owed])


def numbered(count: int, *, first: int = 1) -> list[str]:
    """Return `count` contents that differ."""
    return [f"Message number {n} is about subject {n}." for n in range(first, first + count)]


def claim_due(stack: Stack, kind: WorkKind | None = None, *, lease_seconds: float = 60) -> list[Lease]:
    """Claim every row that is due, of one kind or of all, the way a worker does."""
    with stack.ledger_database.across_tenants() as connection:
        ids = connection.execute(READY, {"kind": kind}).scalars().all()
    return stack.ledger.claim(ids, owner="test", lease_seconds=lease_seconds)


def rows(stack: Stack, query: str, **values: Any) -> list[tuple[Any, ...]]:
    """Run a query as the app role of the tenant; return its rows as tuples."""
    with stack.app.transaction(stack.tenant_id) as connection:
        return [tuple(row) for row in connection.execute(text(query), values)]


def tables_with(stack: Stack, needle: str) -> list[str]:
    """Return the tables of the database in which any column of any row holds the needle, as text."""
    with stack.owner.transaction(stack.tenant_id) as connection:
        return [
            table.name
            for table in METADATA.sorted_tables
            if connection.execute(
                text(f"select 1 from memoryos.{table.name} r where cast(r as text) like :like limit 1"),
                {"like": f"%{needle}%"},
            ).first()
        ]


def set_clock(stack: Stack, at: datetime | None) -> None:
    """Freeze recorded time, as the owner."""
    with stack.owner.across_tenants() as connection:
        freeze_clock(connection, at)


def count_statements(database: Database, action: Callable[[], object]) -> int:
    """Run an action; return how many statements it sent to this database."""
    statements: list[str] = []

    def note(*call: Any) -> None:
        statements.append(call[2])

    event.listen(database.engine, "before_cursor_execute", note)
    action()
    event.remove(database.engine, "before_cursor_execute", note)
    return len(statements)


def wait_for_a_waiter(stack: Stack) -> None:
    """Return once some transaction waits for a lock."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with stack.owner.across_tenants() as connection:
            if connection.execute(text("select 1 from pg_locks where not granted")).first():
                return
    message = "nobody waits for a lock"
    raise TimeoutError(message)
