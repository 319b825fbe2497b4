"""Clusters whose workers ask the stub of the Anthropic API, so that every call is counted."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from memoryos_pipeline.faults.cluster import Cluster, Ground
from tests.stub_server.answers import shown_data
from tests.stub_server.server import StubServer


@contextmanager
def cluster_with_stub(ground: Ground, **settings: str) -> Iterator[tuple[Cluster, StubServer]]:
    """Yield a cluster without members, and the stub that its workers will ask."""
    with (
        StubServer() as stub,
        Cluster(ground, language_model="anthropic", anthropic_base_url=stub.url, **settings) as cluster,
    ):
        yield cluster, stub


def count_repeats(stub: StubServer) -> int:
    """Return how many calls asked what had been asked before: each was paid twice."""
    asked = Counter(
        (request["tool_choice"]["name"], json.dumps(shown_data(request), sort_keys=True)) for request in stub.requests
    )
    return asked.total() - len(asked)
