"""Callers who never stop talking while something is done to the system below them, by both ways in."""

import threading
from contextlib import closing
from types import TracebackType
from typing import Self

from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import LANGUAGES, HttpWriter, QueueWriter, Turn, conversation

BATCH = 5
PAUSE_SECONDS = 0.2
LAST_WORD_SECONDS = 90.0


class Traffic:
    """`with Traffic(cluster, journal, name) as traffic:` sends until the block ends; every turn is then acknowledged.

    One thread a language sends small batches over HTTP; one more publishes to the queue, with an outbox.
    """

    def __init__(self, cluster: Cluster, journal: ClientJournal, name: str, *, turns: int = 200, seed: int = 0) -> None:
        self._cluster, self._journal, self._name = cluster, journal, name
        self._turns, self._seed = turns, seed
        self._over = threading.Event()
        self.sent = 0
        """How many turns were acknowledged over HTTP so far."""
        acts = [threading.Thread(target=self._talk, args=(lang,)) for lang in LANGUAGES]
        self._threads = [*acts, threading.Thread(target=self._publish)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            assert self._cluster.wait_until(lambda thread=thread: not thread.is_alive(), seconds=LAST_WORD_SECONDS)

    def go_on(self, seconds: float) -> None:
        """Let it go on for a while; whoever dies meanwhile is started again."""
        self._cluster.wait_until(self._over.is_set, seconds=seconds)

    def _told(self, lang: str) -> list[Turn]:
        return conversation(self._turns, user=f"{self._name}-{lang}", lang=lang, name=self._name, seed=self._seed)

    def _talk(self, lang: str) -> None:
        told = self._told(lang)
        with closing(HttpWriter(self._cluster, self._journal)) as writer:
            for start in range(0, len(told), BATCH):
                if self._over.is_set():
                    return
                writer.send(told[start : start + BATCH])
                self.sent += BATCH
                self._over.wait(PAUSE_SECONDS * len(LANGUAGES))

    def _publish(self) -> None:
        outbox = self._cluster.ground.directory / f"{self._name}.sqlite"
        with closing(QueueWriter(self._cluster, self._journal, outbox)) as writer:
            writer.send(conversation(30, user=f"{self._name}-queue", name=self._name, seed=self._seed))
