"""Postgres comes and goes under a running system: no false 202, nothing lost or doubled, nobody has to be restarted."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoryos_pipeline.client.errors import NoAnswerError, UnavailableError
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.acceptance.conversations import assert_settled, four_conversations
from tests.acceptance.pipelines import running_worker
from tests.acceptance.running import wait_until
from tests.builders import rows
from tests.conftest import Stack
from tests.processes import System, running_system

QUICK = {"MEMORYOS_LEASE_SECONDS": "3", "MEMORYOS_MODEL_DEADLINE_SECONDS": "2"}
HOWS = (signal.SIGINT, signal.SIGQUIT, signal.SIGINT)
"""Fast, immediate, fast."""
TURNS = 200
HEALED_SECONDS = 5.0
DRAIN_SECONDS = 120.0
ROWS_BETWEEN_RESTARTS = 20


def _restart(stack: Stack, how: signal.Signals) -> None:
    server = stack.server.process
    assert server is not None
    server.send_signal(how)
    server.wait(30)
    stack.server.start()


def _count_done(stack: Stack) -> int:
    count: int = rows(stack, "select count(*) from memoryos.work where state = 'done'")[0][0]
    return count


def _is_taken(system: System, turns: list[dict[str, Any]]) -> bool:
    """Send turns; tell whether they were taken. A refusal says that nothing is known, so they are sent again."""
    with system.client() as client:
        try:
            client.add_turns(turns)
        except (NoAnswerError, UnavailableError):
            return False
    return True


def _wait_for_progress(stack: Stack) -> None:
    enough = _count_done(stack) + ROWS_BETWEEN_RESTARTS
    assert wait_until(lambda: _count_done(stack) >= enough, seconds=30)


@pytest.fixture
def system(stack: Stack, own_valkey: EmbeddedValkey, tmp_path: Path) -> Iterator[System]:
    """A served API, a relay and a worker, with short leases."""
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, own_valkey, tmp_path / "processes.log"))
        started.enter_context(system.process("relay", **QUICK))
        started.enter_context(running_worker(system, **QUICK))
        yield system


@pytest.mark.slow
class TestRestart:
    def test_everybody_goes_on_by_themselves(self, stack: Stack, system: System) -> None:
        """Stopped three times under load, fast and at once: the API answers again in seconds and all is drained."""
        conversations = list(four_conversations(TURNS))
        for turns, how in zip(conversations, HOWS, strict=False):
            assert wait_until(partial(_is_taken, system, turns), seconds=HEALED_SECONDS)
            _wait_for_progress(stack)
            _restart(stack, how)
        assert wait_until(partial(_is_taken, system, conversations[-1]), seconds=HEALED_SECONDS)
        with system.client() as client:
            assert client.wait(DRAIN_SECONDS)["dead"] == 0

        sent = [turn["client_turn_id"] for turns in conversations for turn in turns]
        assert_settled(stack, sent, hot_turns=DEFAULT.hot_capacity_turns)
