"""Postgres ends transactions because of others: deadlocks and serialization failures cost a second try, no answer."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import mint_key
from tests.acceptance.conversations import assert_settled, four_conversations
from tests.builders import rows
from tests.conftest import Stack
from tests.faults.crew import fresh_seed, hired

STRUCK = ("turn", "page", "knowledge", "embedding", "event", "work")
SHARE = 0.08
FUNCTION = """
    create function memoryos.strike() returns trigger language plpgsql as $$
    begin
        if random() < {share} then
            perform nextval('memoryos.strikes');
            if random() < 0.5 then raise exception 'deadlock detected' using errcode = '40P01'; end if;
            raise exception 'could not serialize access' using errcode = '40001';
        end if;
        return null;
    end $$
"""
DEATHS = "select kind, last_error_class from memoryos.work where state = 'dead'"


@pytest.fixture
def struck(stack: Stack) -> Stack:
    """A database in which some of the statements that write end as Postgres ends the loser of a deadlock."""
    with stack.owner.across_tenants() as connection:
        connection.execute(text("create sequence memoryos.strikes"))
        connection.execute(text("grant usage on memoryos.strikes to public"))
        connection.execute(text(FUNCTION.format(share=SHARE)))
        for table in STRUCK:
            when = f"create trigger strike before insert or update on memoryos.{table}"
            connection.execute(text(f"{when} for each statement execute function memoryos.strike()"))
    return stack


def _count_strikes(stack: Stack) -> int:
    with stack.owner.across_tenants() as connection:
        return int(connection.execute(text("select last_value from memoryos.strikes")).scalar_one())


def _post(client: TestClient, turns: list[dict[str, Any]]) -> set[int]:
    """Post turns in small batches, each until it is taken; return every status that was answered."""
    statuses: set[int] = set()
    for start in range(0, len(turns), 5):
        while True:
            status = client.post("/v1/turns", json={"turns": turns[start : start + 5]}).status_code
            statuses.add(status)
            if status != 503:
                break
    return statuses


class TestRefusedTransactions:
    def test_callers_and_stages_try_again(self, struck: Stack) -> None:
        """Every eighth statement or so is struck: answers are 202 or 503, no attempt dies of it, all is settled."""
        seed = fresh_seed()
        parts = Parts(struck.app, None, None)  # type: ignore[arg-type]
        headers = {"authorization": f"Bearer {mint_key(struck.owner, struck.tenant_id)}"}
        conversations = list(four_conversations(160))
        random.Random(seed).shuffle(conversations)
        client = TestClient(create_app(parts), headers=headers, raise_server_exceptions=False)
        statuses: set[int] = set()

        def ingest() -> None:
            with client, ThreadPoolExecutor(4) as callers:
                for found in callers.map(lambda turns: _post(client, turns), conversations):
                    statuses.update(found)

        with hired(struck, seed=seed) as crew:
            crew.drain(seconds=120, meanwhile=ingest)

        assert statuses <= {202, 503}
        assert 202 in statuses
        assert _count_strikes(struck) > 20
        assert rows(struck, DEATHS) == []
        sent = [turn["client_turn_id"] for turns in conversations for turn in turns]
        assert_settled(struck, sent, hot_turns=DEFAULT.hot_capacity_turns)
