"""Every kind of work, the queue's way in, relay and API, each killed once at each of its named points."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.failpoints import parse_failpoints
from memoryos_pipeline.faults.campaign import KINDS
from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster, Ground
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.traffic import Traffic
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.clock import freeze_clock, read_now
from tests.faults.stub_clusters import cluster_with_stub, count_repeats
from tests.stub_server.server import StubServer

EVERYWHERE = ("after_claim", "before_commit", "after_commit_before_ack")
PAID = ("summarize", "distill", "merge")
WORKER = [
    *(f"{point}:{kind}" for kind in KINDS for point in EVERYWHERE),
    *(f"{point}:{kind}" for kind in PAID for point in ("after_llm", "after_journal")),
    *("mid_batch:merge", "mid_batch:forget", "after_tombstone:forget", "between_rows"),
    *("after_claim:ingest", "before_commit:turns", "after_commit_before_ack:ingest"),
]
API = ["before_commit:turns:2", "after_commit_before_answer:turns"]
RELAY = [f"after_stamp_before_publish:{queue}" for queue in ("maintenance", "summarize", "embed")]
WORKERS = 3
TURNS = 400
ENOUGH_ATTEMPTS = "40"
"""Here every kind is killed again and again while the same few rows are about: none is to be given up for that."""
DRAIN_SECONDS = 480.0
"""A bound for a machine that does other things too; forty processes are started again."""


def _kills(points: list[str]) -> dict[str, str]:
    return {"MEMORYOS_FAILPOINTS": ",".join(f"{point}=kill" for point in points)}


@pytest.fixture(scope="module")
def stubbed(ground: Ground) -> Iterator[tuple[Cluster, StubServer]]:
    """A system in which every named point kills once, over the stub of the Anthropic API."""
    with cluster_with_stub(ground, max_attempts=ENOUGH_ATTEMPTS) as (cluster, stub):
        cluster.add_api(**_kills(API)).start()
        cluster.add_relay(**_kills(RELAY)).start()
        cluster.add_beat().start()
        for number in range(WORKERS):
            cluster.add_worker(f"worker-{number}", **_kills(WORKER)).start()
        _loosen_brake(cluster)
        yield cluster, stub


def _loosen_brake(cluster: Cluster) -> None:
    """Let a sweep forget a whole small memory: how much of one is due at once is a matter of chance here."""
    policy = Policy(forget_brake_min_rows=1_000)
    put_policy(cluster.app, cluster.tenant_id, user_id=None, preset="default", policy=policy)


def _let_pass(cluster: Cluster, *, days: int) -> None:
    with cluster.owner.across_tenants() as connection:
        freeze_clock(connection, read_now(connection) + timedelta(days=days))


def _missing(cluster: Cluster, points: list[str]) -> list[str]:
    names = [each.name for each in parse_failpoints(",".join(f"{point}=kill" for point in points))]
    return [name for name in names if cluster.fired(name) is None]


@pytest.mark.slow
class TestKill:
    def test_nothing_is_lost_or_doubled_wherever_a_process_dies(
        self, stubbed: tuple[Cluster, StubServer], journal: ClientJournal, seed: int
    ) -> None:
        """Some forty deaths, a line each: everything is there once, and at most one answer a death is paid again."""
        cluster, stub = stubbed
        with Traffic(cluster, journal, turns=TURNS, seed=seed) as traffic:
            traffic.open.set()
            assert cluster.wait_until(lambda: traffic.is_over, seconds=DRAIN_SECONDS)
        # Pages cool and knowledge fades when time passes; that is work of its own kinds.
        for days, kind in ((0, "merge"), (30, "heat"), (300, "forget")):
            _let_pass(cluster, days=days)
            points = [point for point in WORKER if point.partition(":")[2] == kind]
            cluster.wait_until(lambda points=points: not _missing(cluster, points), seconds=DRAIN_SECONDS)
        cluster.drain(DRAIN_SECONDS)

        assert _missing(cluster, [*WORKER, *API, *RELAY]) == []
        assert count_repeats(stub) <= len(WORKER)
        verdict = check(cluster, journal.path)
        assert verdict.wrongs() == {}
        assert verdict.acknowledged == TURNS
