"""An erased user is gone from every table, at once, and nobody else is touched."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import ErasedScopeError, InvalidTurnError, NotFoundError
from memoryos_pipeline.domain.ids import mint_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.stages.erase_user import erase_user
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.erasure import (
    TABLES_OF_A_PART,
    TABLES_OF_A_SCOPE,
    TABLES_THAT_STAY,
    ErasureIncompleteError,
)
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.pages import lock_conversation
from memoryos_pipeline.store.tables import METADATA
from memoryos_pipeline.store.tenants import create_tenant
from memoryos_pipeline.store.turns import ConversationShare, open_conversations
from tests.builders import record, tables_with, wait_for_a_waiter
from tests.conftest import Stack
from tests.integration.readmodels.past import live_a_past

CANARY = "kanariya-7f3a-カナリア"
TENANT_TABLES = sorted(table.name for table in METADATA.tables.values() if "tenant_id" in table.columns)


BODY = {
    "user_id": "maya",
    "agent_id": "companion",
    "conversation_id": "c1",
    "client_turn_id": "t1",
    "role": "user",
    "content": CANARY,
    "occurred_at": "2026-05-04T18:02:00+09:00",
}


def _record(stack: Stack, client_turn_id: str, user_id: str = "maya") -> Any:
    body = {**BODY, "client_turn_id": client_turn_id, "user_id": user_id}
    return record_turns(stack.app, stack.tenant_id, [parse_turn(body)], policy=DEFAULT, max_attempts=5)


def _wait_for_waiter(stack: Stack) -> None:
    """Return once some session of the database waits for an advisory lock; fail after ten seconds."""
    waiting = text("""
        select 1 from pg_locks l join pg_database d on d.oid = l.database
         where l.locktype = 'advisory' and not l.granted and d.datname = current_database()
    """)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with stack.owner.across_tenants() as connection:
            if connection.execute(waiting).first():
                return
    pytest.fail("the erasure did not wait for the recording")


class TestEraseUser:
    def test_every_table_is_thought_of(self) -> None:
        """A table is emptied with its memory, or is listed as one that holds nothing of a user."""
        named = [*TABLES_OF_A_SCOPE, *TABLES_OF_A_PART, *TABLES_THAT_STAY, "policy"]

        assert sorted(named) == TENANT_TABLES

    def test_the_canary_sings_before_and_is_silent_after(self, stack: Stack) -> None:
        """Text of an erased user is in no table; it was in all of these before."""
        live_a_past(stack.app, stack.tenant_id, user_id=CANARY, canary=CANARY)
        before = set(tables_with(stack, CANARY))
        receipt = erase_user(stack.app, stack.tenant_id, CANARY)

        assert before >= {"turn", "page", "segment", "candidate", "knowledge", "posting", "llm_call", "dead_letter"}
        assert tables_with(stack, CANARY) == []
        assert receipt.rows_removed > 40

    def test_a_past_reaches_every_table(self, stack: Stack) -> None:
        """The canary test is only as good as the past it erases: it fills every table an erasure empties."""
        live_a_past(stack.app, stack.tenant_id)
        with stack.app.transaction(stack.tenant_id) as connection:
            empty = [
                name
                for name in [*TABLES_OF_A_SCOPE, *TABLES_OF_A_PART, "policy"]
                if not connection.exec_driver_sql(f"select count(*) from memoryos.{name}").scalar_one()
            ]

        assert empty == []

    def test_nobody_else_is_touched(self, stack: Stack) -> None:
        """Another user of the tenant, and the same name in another tenant, keep everything."""
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        live_a_past(stack.app, other, user_id="maya")
        live_a_past(stack.app, stack.tenant_id, user_id="jun")
        live_a_past(stack.app, stack.tenant_id, user_id="maya")
        erase_user(stack.app, stack.tenant_id, "maya")

        for tenant_id in (stack.tenant_id, other):
            with stack.app.transaction(tenant_id) as connection:
                assert connection.exec_driver_sql("select count(*) from memoryos.turn").scalar_one() == 7
                assert connection.exec_driver_sql("select count(*) from memoryos.knowledge").scalar_one() == 3

    def test_recording_is_refused_from_then_on(self, stack: Stack) -> None:
        """The deletion ledger outlives the rows, and holds a hash only."""
        _record(stack, "t1")
        erase_user(stack.app, stack.tenant_id, "maya")

        with pytest.raises(ErasedScopeError):
            _record(stack, "t2")

    def test_erasing_again_is_safe(self, stack: Stack) -> None:
        """A second request finds nothing and says so."""
        live_a_past(stack.app, stack.tenant_id)
        erase_user(stack.app, stack.tenant_id, "maya")

        assert erase_user(stack.app, stack.tenant_id, "maya").rows_removed == 0

    def test_an_unknown_user_is_not_blocked_for_ever(self, stack: Stack) -> None:
        """A slip of the pen leaves no tombstone behind."""
        with pytest.raises(NotFoundError):
            erase_user(stack.app, stack.tenant_id, "mayaa")

        assert len(_record(stack, "t1", user_id="mayaa")) == 1

    def test_a_name_nobody_can_have_is_refused(self, stack: Stack) -> None:
        """What could not be recorded cannot be erased either."""
        with pytest.raises(InvalidTurnError):
            erase_user(stack.app, stack.tenant_id, "ma\0ya")

    def test_success_is_not_said_when_something_is_left(self, stack: Stack) -> None:
        """If a row survives, the erasure is taken back whole and raises."""
        live_a_past(stack.app, stack.tenant_id)
        with stack.owner.across_tenants() as connection:
            connection.exec_driver_sql("alter table memoryos.event drop constraint event_tenant_id_scope_id_fkey")

        with pytest.raises(ErasureIncompleteError):
            erase_user(stack.app, stack.tenant_id, "maya")
        with stack.app.transaction(stack.tenant_id) as connection:
            assert connection.exec_driver_sql("select count(*) from memoryos.turn").scalar_one() == 7
            assert connection.exec_driver_sql("select count(*) from memoryos.deletion_ledger").scalar_one() == 0

    def test_a_stage_in_the_way_does_not_make_it_fail(self, stack: Stack) -> None:
        """A stage locks a conversation before its memory, erasing the other way round: one yields, and both succeed."""
        conversation = record(stack, CANARY)
        with ThreadPoolExecutor() as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                lock_conversation(connection, stack.tenant_id, conversation)
                erasing = pool.submit(erase_user, stack.app, stack.tenant_id, "maya")
                wait_for_a_waiter(stack)
                scope = scope_id(stack.tenant_id, "maya", "companion")
                owe(connection, stack.tenant_id, [Owed(WorkKind.EMBED, "turns:page", scope)])

            assert erasing.result(20).rows_removed
        assert tables_with(stack, CANARY) == []

    def test_no_turn_slips_in_behind_it(self, stack: Stack) -> None:
        """Whoever is recording when an erasure begins is waited for, and erased; whoever comes after is refused."""
        _record(stack, "first")
        scope = scope_id(stack.tenant_id, "maya", "new agent")
        share = ConversationShare(mint_id(), scope, CANARY, "maya", "new agent", 1, *[parse_turn(BODY).occurred_at] * 2)
        with ThreadPoolExecutor(1) as pool:
            with stack.app.transaction(stack.tenant_id) as connection:
                open_conversations(connection, stack.tenant_id, [share])
                erasing = pool.submit(erase_user, stack.app, stack.tenant_id, "maya")
                _wait_for_waiter(stack)
                assert not erasing.done()
            assert erasing.result().rows_removed > 0

        assert tables_with(stack, CANARY) == []
        with pytest.raises(ErasedScopeError):
            _record(stack, "late")
