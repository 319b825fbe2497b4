"""An answer is paid for once: not again for a crash after its journal, once more for one before it."""

from collections.abc import Iterator

import pytest

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster, Ground
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import HttpWriter, conversation
from tests.faults.stub_clusters import cluster_with_stub, count_repeats
from tests.stub_server.server import StubServer

DRAIN_SECONDS = 240.0
TURNS = 80


@pytest.fixture(scope="module")
def stubbed(ground: Ground) -> Iterator[tuple[Cluster, StubServer]]:
    """A system with one worker that does one thing at a time, over the stub of the Anthropic API."""
    with cluster_with_stub(ground) as (cluster, stub):
        cluster.add_api().start()
        cluster.add_relay().start()
        cluster.add_worker("worker", concurrency=1)
        cluster.members["api"].ready()
        yield cluster, stub


def _work(cluster: Cluster, journal: ClientJournal, user: str, failpoint: str = "") -> None:
    """Send a conversation that comes back to the same things; the worker lives its next life with a failpoint."""
    with HttpWriter(cluster, journal) as http:
        assert http.send(conversation(TURNS, user=user, lang="ja"))
    cluster.members["worker"].restart(MEMORYOS_FAILPOINTS=f"{failpoint}=kill" if failpoint else "")
    cluster.drain(DRAIN_SECONDS)


@pytest.mark.slow
class TestPay:
    def test_without_faults_nothing_is_asked_twice(
        self, stubbed: tuple[Cluster, StubServer], journal: ClientJournal
    ) -> None:
        """One call for each question, of every kind that asks."""
        cluster, stub = stubbed
        _work(cluster, journal, "calm")

        assert {request["tool_choice"]["name"] for request in stub.requests} >= {"record_summary", "record_statements"}
        assert count_repeats(stub) == 0

    @pytest.mark.parametrize("failpoint", ["after_journal:summarize", "before_commit:distill"])
    def test_a_crash_behind_the_journal_costs_nothing(
        self, stubbed: tuple[Cluster, StubServer], journal: ClientJournal, failpoint: str
    ) -> None:
        """Killed after the answer was kept and before it was applied: the next life uses the kept one."""
        cluster, stub = stubbed
        before = count_repeats(stub)
        _work(cluster, journal, failpoint.partition(":")[2], failpoint)

        assert cluster.fired(failpoint.replace(":", "."))
        assert count_repeats(stub) == before

    def test_a_crash_before_the_journal_costs_one_call(
        self, stubbed: tuple[Cluster, StubServer], journal: ClientJournal
    ) -> None:
        """Killed with the answer in hand: it is asked for once more, and everything is there once."""
        cluster, stub = stubbed
        before = count_repeats(stub)
        _work(cluster, journal, "unkept", "after_llm:summarize")

        assert cluster.fired("after_llm.summarize")
        assert count_repeats(stub) == before + 1
        assert check(cluster, journal.path).wrongs() == {}
