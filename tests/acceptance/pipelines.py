"""The whole pipeline as real processes around a served API."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import QUEUES
from tests.acceptance.running import wait_until
from tests.conftest import Stack
from tests.processes import System, running_system

PIPELINE = {"MEMORYOS_LANGUAGE_MODEL": "extractive"}
"""What workers are given besides where things are: no model of anybody else's."""
READY = " ready."
"""What Celery says once a worker consumes its queues."""


@contextmanager
def running_pipeline(stack: Stack, valkey: EmbeddedValkey, log: Path) -> Iterator[System]:
    """Run the API, a relay and one worker for every queue; yields once they have found the broker."""
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, valkey, log))
        started.enter_context(system.process("relay"))
        started.enter_context(system.process("worker", "--queues", ",".join(QUEUES), **PIPELINE))
        assert wait_until(lambda: READY in log.read_text(), seconds=60), log.read_text()
        yield system
