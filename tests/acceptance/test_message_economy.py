"""The broker carries few messages: a long conversation costs less than one for every two turns."""

from pathlib import Path

import pytest
from redis import Redis

from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.acceptance.conversations import assert_settled, long_conversation
from tests.acceptance.pipelines import running_pipeline
from tests.conftest import Stack

TURNS = 600
MESSAGES_PER_TURN = 0.5
DRAIN_SECONDS = 120.0


def _messages(broker: Redis) -> int:
    """Return how many messages were ever put on a queue of this broker, whoever did it."""
    return int(broker.info("commandstats").get("cmdstat_lpush", {"calls": 0})["calls"])


@pytest.mark.slow
class TestMessageEconomy:
    def test_single_posts_cost_half_a_message_each(
        self, stack: Stack, own_valkey: EmbeddedValkey, tmp_path: Path
    ) -> None:
        """600 turns, a request each, as fast as they go: until all is done, 300 messages at most were sent."""
        turns = long_conversation(TURNS)
        with (
            running_pipeline(stack, own_valkey, tmp_path / "processes.log") as system,
            system.client() as client,
            Redis.from_url(own_valkey.url) as broker,
        ):
            before = _messages(broker)
            for turn in turns:
                client.add_turns([turn])
            assert client.wait(DRAIN_SECONDS)["dead"] == 0
            sent = _messages(broker) - before

        assert 0 < sent <= MESSAGES_PER_TURN * TURNS
        assert_settled(stack, [turn["client_turn_id"] for turn in turns], hot_turns=DEFAULT.hot_capacity_turns)
