"""Whatever is done to ledger and store, in whatever order: nothing is lost, nothing doubled, no invariant broken."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from redis import Redis

from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.conftest import Stack
from tests.properties.ledger_machine import LedgerMachine, World, open_world


@pytest.fixture
def world(stack: Stack, valkey: EmbeddedValkey) -> Iterator[World]:
    """A database, a broker and three sessions."""
    broker = Redis.from_url(valkey.url)
    opened = open_world(stack, broker)
    yield opened
    opened.close()
    broker.close()


class TestLedgerMachine:
    def test_a_few_lives(self, world: World) -> None:
        """The same few orders every time: what `make test` has time for."""
        run_state_machine_as_test(
            lambda: LedgerMachine(world),
            settings=settings(
                max_examples=8,
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
