"""A short taste of what tests/faults does at length: a kill, an emptied broker, a restarted database."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import LANGUAGES, HttpWriter, QueueWriter, conversation

DRAIN_SECONDS = 240.0


@pytest.mark.slow
@pytest.mark.smoke
class TestSmoke:
    def test_nothing_is_lost_or_doubled(self, cluster: Cluster, journal: ClientJournal) -> None:
        """Both ways in, a worker killed in a commit, broker emptied, database crashed: every effect is there once."""
        cluster.add_api().start()
        cluster.add_relay().start()
        worker = cluster.add_worker("worker").start(MEMORYOS_FAILPOINTS="before_commit:summarize=kill")
        cluster.members["api"].ready()
        turns = [turn for lang in LANGUAGES for turn in conversation(40, user=f"user-{lang}", lang=lang)]
        with HttpWriter(cluster, journal) as http:
            assert http.send(turns)
        outbox = cluster.ground.directory / "outbox.sqlite"
        with QueueWriter(cluster, journal, outbox) as queue, ThreadPoolExecutor(1) as hand:
            sent = hand.submit(queue.send, conversation(30, user="queue"))
            try:  # the worker may be dead before it takes them, and only this thread starts it again
                assert cluster.wait_until(sent.done, seconds=DRAIN_SECONDS)
            finally:
                queue.given_up.set()
            assert sent.result()

        assert cluster.wait_until(lambda: cluster.fired("before_commit.summarize"), seconds=DRAIN_SECONDS)
        cluster.wipe_broker()
        cluster.restart_postgres(at_once=True)
        cluster.drain(DRAIN_SECONDS)

        assert worker.starts == 2
        verdict = check(cluster, journal.path)
        assert verdict.wrongs() == {}
        assert verdict.acknowledged == 190
