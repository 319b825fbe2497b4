"""A file of conversations gives one memory, whether it goes in over HTTP or through the queue, once or twice."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memoryos_pipeline.cli.as_lived import TurnBody
from memoryos_pipeline.cli.readers import read_turns
from memoryos_pipeline.cli.ways_in import OverHttp, ThroughQueue, WayIn
from memoryos_pipeline.client import SQLiteOutbox, TurnPublisher
from memoryos_pipeline.client.outbox import entry_of
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.readmodels.dump import canonical_dump
from memoryos_pipeline.settings import QUEUES
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.conftest import Stack
from tests.locomo import SHARED_LOCOMO, locomo_file, write_locomo
from tests.processes import System, running_system

UTC_ZONE = ZoneInfo("UTC")
DRAIN_SECONDS = 300.0


@contextmanager
def _system(stack: Stack, valkey: EmbeddedValkey, directory: Path, *, pipeline: bool) -> Iterator[System]:
    """Run the API and real processes: a worker for `ingest`, and for the whole pipeline all queues and a relay."""
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, valkey, directory / "processes.log"))
        started.enter_context(system.worker(",".join(QUEUES) if pipeline else "ingest"))
        if pipeline:
            started.enter_context(system.process("relay"))
        yield system


def _by_http(system: System, turns: list[TurnBody], _: Path) -> WayIn:
    with system.client() as client:
        way = OverHttp(client, batch=100, advanced=lambda _: None)
        way.add_turns(turns)
    return way


def _by_queue(system: System, turns: list[TurnBody], directory: Path) -> WayIn:
    with ExitStack() as opened:
        client = opened.enter_context(system.client())
        outbox = SQLiteOutbox(directory / "outbox.sqlite")
        opened.callback(outbox.close)
        publisher = _publisher(system, outbox)
        opened.callback(publisher.close)
        way = ThroughQueue(client, publisher, advanced=lambda _: None)
        way.add_turns(turns)
    return way


def _publisher(system: System, outbox: SQLiteOutbox) -> TurnPublisher:
    return TurnPublisher(
        system.broker_url, system.api_url, system.api_key, outbox, broker_key_prefix=system.broker_key_prefix
    )


WAYS = {"http": _by_http, "queue": _by_queue}


def _tenants(system: System) -> dict[str, System]:
    """Return the same system as two tenants see it, one a way in."""
    second = mint_id()
    create_tenant(system.stack.owner, second, "second")
    key = mint_key(system.stack.owner, second)
    return {"http": system, "queue": replace(system, api_key=key, stack=replace(system.stack, tenant_id=second))}


def _close_conversations(system: System, turns: list[TurnBody]) -> None:
    with system.client() as client:
        for conversation in sorted({entry_of(turn).conversation for turn in turns}):
            client.close_conversation(conversation)


def _drained_dump(system: System) -> list[str]:
    with system.client() as client:
        assert client.wait(DRAIN_SECONDS)["dead"] == 0
    return _dump(system)


def _dump(system: System) -> list[str]:
    with system.stack.app.transaction(system.stack.tenant_id) as connection:
        return canonical_dump(connection, system.stack.tenant_id)


class TestTwoWaysIn:
    def test_every_turn_of_a_large_file_is_recorded_alike(
        self, stack: Stack, valkey: EmbeddedValkey, tmp_path: Path
    ) -> None:
        """All turns, in equal dumps of what was said; a second run by either way adds nothing to either."""
        path = locomo_file(tmp_path / "locomo.json")
        turns = read_turns(path, UTC_ZONE)
        dumps = []
        with _system(stack, valkey, tmp_path, pipeline=False) as system:
            for name, tenant in _tenants(system).items():
                assert WAYS[name](tenant, turns, tmp_path).count.recorded == len(turns)
                dumps.append(_dump(tenant))
                assert [WAYS[way](tenant, turns, tmp_path).count.recorded for way in WAYS] == [0, 0]
                assert _dump(tenant) == dumps[-1]

        assert len(turns) == (3019 if path == SHARED_LOCOMO else 3000)
        assert len(dumps[0]) == len(turns)
        assert dumps[0] == dumps[1]

    @pytest.mark.slow
    def test_the_drained_pipeline_knows_the_same(self, stack: Stack, valkey: EmbeddedValkey, tmp_path: Path) -> None:
        """Pages, segments, knowledge, links and profile are equal too, and a second run leaves them alone."""
        turns = read_turns(write_locomo(tmp_path / "locomo.json", samples=2, sessions=4, turns=12), UTC_ZONE)
        dumps = []
        with _system(stack, valkey, tmp_path, pipeline=True) as system:
            for name, tenant in _tenants(system).items():
                WAYS[name](tenant, turns, tmp_path)
                _close_conversations(tenant, turns)
                dumps.append(_drained_dump(tenant))
                assert WAYS[name](tenant, turns, tmp_path).count.recorded == 0
                assert _drained_dump(tenant) == dumps[-1]

        assert {"turn", "page", "segment"} <= {json.loads(line)["is"] for line in dumps[0]}
        assert dumps[0] == dumps[1]
