"""The broker is a doorbell: while it is away turns are taken, and when it is back everything is done by itself."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.acceptance.conversations import assert_settled, four_conversations
from tests.acceptance.pipelines import running_pipeline
from tests.conftest import Stack
from tests.processes import System

TURNS = 2_000
TURNS_PER_REQUEST = 20
DRAIN_SECONDS = 180.0
"""A bound for a machine that does other things too; alone, two cores need about a sixth of it."""


def _post(system: System, turns: list[dict[str, Any]]) -> list[int]:
    """Post turns in small requests over one connection; return what each was answered."""
    headers = {"authorization": f"Bearer {system.api_key}"}
    requests = [turns[start : start + TURNS_PER_REQUEST] for start in range(0, len(turns), TURNS_PER_REQUEST)]
    with httpx.Client(base_url=system.api_url, headers=headers, trust_env=False, timeout=30) as http:
        return [http.post("/v1/turns", json={"turns": each}).status_code for each in requests]


@pytest.mark.slow
class TestBrokerAway:
    def test_turns_are_taken_and_everything_drains_afterwards(
        self, stack: Stack, own_valkey: EmbeddedValkey, tmp_path: Path
    ) -> None:
        """2,000 turns posted while Valkey is stopped: every answer 202; started again, nothing is left to do."""
        conversations = list(four_conversations(TURNS))
        sent = [turn["client_turn_id"] for turns in conversations for turn in turns]
        log = tmp_path / "processes.log"
        with running_pipeline(stack, own_valkey, log) as system, system.client() as client:
            own_valkey.stop()
            answers = [status for turns in conversations for status in _post(system, turns)]
            waiting = client.status()
            own_valkey.start()
            drained = client.wait(DRAIN_SECONDS)

        assert answers == [202] * (TURNS // TURNS_PER_REQUEST)
        assert waiting["owed"] > 0
        assert "relay_waits" in log.read_text()
        assert drained["dead"] == 0
        assert_settled(stack, sent, hot_turns=DEFAULT.hot_capacity_turns)
