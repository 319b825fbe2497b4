"""The commit went through and its reply did not: whoever repeats is told the same, and nothing has happened twice."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import mint_key
from tests.acceptance.conversations import assert_settled, four_conversations, long_conversation
from tests.acceptance.pipelines import running_worker
from tests.builders import rows
from tests.conftest import Stack
from tests.faults.crew import fresh_seed
from tests.faults.proxy import FaultyProxy
from tests.processes import System, running_system, served_api
from tests.stub_server.answers import shown_data
from tests.stub_server.server import StubServer

QUICK = {
    "MEMORYOS_LEASE_SECONDS": "3",
    "MEMORYOS_MODEL_DEADLINE_SECONDS": "2",
    "MEMORYOS_RELAY_STALE_SECONDS": "3",
    "MEMORYOS_MAX_ATTEMPTS": "20",
}
TURNS = 120
DROPPED_SHARE = 0.1
DROPPED = 40
DRAIN_SECONDS = 120.0
DOUBLED = """
    select kind, subject_id from memoryos.event
     where kind in ('page_sealed', 'page_summarized', 'page_assigned', 'page_distilled', 'knowledge_added')
     group by kind, subject_id having count(*) > 1
"""


@pytest.fixture
def proxy(stack: Stack) -> Iterator[FaultyProxy]:
    """A proxy before the database."""
    with FaultyProxy(stack.server.port, seed=fresh_seed()) as made:
        yield made


class TestRecord:
    def test_the_repeat_gets_the_seq_that_was_given(self, stack: Stack, proxy: FaultyProxy) -> None:
        """Every request commits and hears nothing: it is told 503, and its repeat the same numbers, as a duplicate."""
        database = Database(stack.url("app").replace(f":{stack.server.port}/", f":{proxy.port}/"))
        headers = {"authorization": f"Bearer {mint_key(stack.owner, stack.tenant_id)}"}
        parts = Parts(database, None, None)  # type: ignore[arg-type]
        turns = long_conversation(30, lang="ja")
        told: list[tuple[int, list[tuple[int, bool]]]] = []
        with served_api(parts) as url, httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
            for start in range(0, len(turns), 3):
                batch = {"turns": turns[start : start + 3]}
                proxy.drop_replies(after=b"insert into memoryos.turn")
                first = http.post("/v1/turns", json=batch)
                again = http.post("/v1/turns", json=batch)
                receipts = [(turn["seq"], turn["duplicate"]) for turn in again.json()["turns"]]
                told.append((first.status_code, receipts))
        database.dispose()

        expected: list[Any] = [(503, [(n, True) for n in range(s + 1, s + 4)]) for s in range(0, 30, 3)]
        assert proxy.dropped == 10
        assert told == expected
        assert rows(stack, "select seq from memoryos.turn order by seq") == [(n,) for n in range(1, 31)]


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A language model that counts what it is asked."""
    with StubServer() as made:
        yield made


@pytest.fixture
def system(
    stack: Stack, own_valkey: EmbeddedValkey, proxy: FaultyProxy, stub: StubServer, tmp_path: Path
) -> Iterator[System]:
    """A served API with a straight way to the database; a relay and a worker behind the proxy."""
    direct, crooked = f":{stack.server.port}/", f":{proxy.port}/"
    crook = {
        "MEMORYOS_DATABASE_URL": stack.url("app").replace(direct, crooked),
        "MEMORYOS_LEDGER_URL": stack.url("ledger").replace(direct, crooked),
        "ANTHROPIC_API_KEY": "none",
        "MEMORYOS_ANTHROPIC_BASE_URL": stub.url,
        **QUICK,
    }
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, own_valkey, tmp_path / "processes.log"))
        started.enter_context(system.process("relay", **crook))
        crook["MEMORYOS_LANGUAGE_MODEL"] = "anthropic"
        started.enter_context(running_worker(system, **crook))
        yield system


class TestWork:
    def test_a_stage_that_is_not_told_does_nothing_twice(
        self, stack: Stack, system: System, proxy: FaultyProxy, stub: StubServer
    ) -> None:
        """Dozens of commits, of claims, stages and beats, go through unheard: every effect is there and paid once."""
        conversations = list(four_conversations(TURNS))
        proxy.drop_replies(share=DROPPED_SHARE, times=DROPPED)
        with system.client() as client:
            for turns in conversations:
                client.add_turns(turns)
            client.wait(DRAIN_SECONDS)
            dead = client.status()["dead"]

        asked = [(request["tool_choice"]["name"], str(shown_data(request))) for request in stub.requests]
        assert proxy.dropped >= DROPPED / 2
        assert dead == 0
        assert rows(stack, DOUBLED) == []
        assert len(asked) > 0
        assert len(asked) == len(set(asked))
        sent = [turn["client_turn_id"] for turns in conversations for turn in turns]
        assert_settled(stack, sent, hot_turns=DEFAULT.hot_capacity_turns)
