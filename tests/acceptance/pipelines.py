"""The whole pipeline as real processes around a served API."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import QUEUES
from tests.acceptance.running import wait_until
from tests.conftest import Stack
from tests.processes import System, running_system

EXTRACTIVE = {"MEMORYOS_LANGUAGE_MODEL": "extractive"}
"""What workers are given besides where things are: no model of anybody else's."""
READY = " ready."
"""What Celery says once a worker consumes its queues."""


@contextmanager
def running_worker(system: System, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one worker for every queue; yields once it has found the broker."""
    before = _count_ready(system)
    with system.process("worker", "--queues", ",".join(QUEUES), **(EXTRACTIVE | environment)) as worker:
        assert wait_until(lambda: _count_ready(system) > before, seconds=60), system.log.read_text()
        yield worker


def _count_ready(system: System) -> int:
    return system.log.read_text(encoding="utf-8").count(READY) if system.log.exists() else 0


@contextmanager
def running_pipeline(stack: Stack, valkey: EmbeddedValkey, log: Path) -> Iterator[System]:
    """Run the API, a relay and one worker; yields once the worker has found the broker."""
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, valkey, log))
        started.enter_context(system.process("relay"))
        started.enter_context(running_worker(system))
        yield system
