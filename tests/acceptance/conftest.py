"""What acceptance tests share besides the servers of every test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryos_pipeline.embedded.valkey import EmbeddedValkey


@pytest.fixture
def own_valkey() -> Iterator[EmbeddedValkey]:
    """A Valkey of one test's own: it may be stopped, and nobody else's messages are counted in it."""
    with tempfile.TemporaryDirectory(prefix="mem-test-own-") as root:
        Path(root).chmod(0o755)
        server = EmbeddedValkey(Path(root) / "server")
        server.start()
        try:
            yield server
        finally:
            server.stop()
