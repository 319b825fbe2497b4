"""Two hundred lives of the ledger and its store, fifty steps each, another two hundred every time.

MEMORYOS_MACHINE_LIVES and MEMORYOS_MACHINE_STEPS make it a night of them.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from redis import Redis

from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.conftest import Stack
from tests.faults.crew import fresh_seed
from tests.properties.ledger_machine import LedgerMachine, World, open_world

LIVES = int(os.environ.get("MEMORYOS_MACHINE_LIVES", "200"))
STEPS = int(os.environ.get("MEMORYOS_MACHINE_STEPS", "50"))


@pytest.fixture
def world(stack: Stack, valkey: EmbeddedValkey) -> Iterator[World]:
    """A database, a broker and three sessions."""
    broker = Redis.from_url(valkey.url)
    opened = open_world(stack, broker)
    yield opened
    opened.close()
    broker.close()


class TestManyLives:
    def test_nothing_is_lost_doubled_or_left(self, world: World) -> None:
        """Whatever is done to it in whatever order, the ledger is the model's and no invariant is broken."""
        run_state_machine_as_test(
            seed(fresh_seed())(lambda: LedgerMachine(world)),  # type: ignore[arg-type]
            settings=settings(
                max_examples=LIVES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )
