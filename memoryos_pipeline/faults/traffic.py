"""Callers that go on whatever happens: they write both ways, read, and hold back while much is owed."""

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from memoryos_pipeline.client.errors import MemoryClientError
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import LANGUAGES, HttpWriter, QueueWriter, Turn, Writer, conversation

TURNS_A_CONVERSATION = 100
TURNS_A_REQUEST = 20
QUEUE_SHARE = 4
"""Every fourth conversation goes through the queue."""
QUESTION_SECONDS = 0.5
QUESTIONS = ("When is the trip?", "旅行はいつですか", "여행은 언제예요?", "旅行是什么时候？")


@dataclass(frozen=True, slots=True)
class Story:
    """One conversation to send, and whose it is."""

    user: str
    turns: Sequence[Turn]


def stories(turns: int, *, seed: int) -> list[Story]:
    """Return conversations of a hundred turns, one a user, in four languages, so many turns together."""
    told = []
    for number, start in enumerate(range(0, turns, TURNS_A_CONVERSATION)):
        size, lang = min(TURNS_A_CONVERSATION, turns - start), LANGUAGES[number % len(LANGUAGES)]
        user = f"{lang}-{number}"
        told.append(Story(user, conversation(size, user=user, lang=lang, seed=seed)))
    return told


class Traffic:
    """Threads that send every story once, from the beginning of its block on, whoever has died.

    They send while `open` is set; `sent` counts the turns that were acknowledged, and at `limit` they close it.
    """

    def __init__(self, cluster: Cluster, journal: ClientJournal, *, turns: int, seed: int) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._stories = stories(turns, seed=seed)
        self._ended = threading.Event()
        self._writers: list[Writer] = [HttpWriter(cluster, journal), HttpWriter(cluster, journal)]
        self._writers.append(QueueWriter(cluster, journal, _outbox(journal)))
        self._chance = Random(seed)  # noqa: S311 - repeatable on purpose
        by_queue = self._stories[::QUEUE_SHARE]
        by_http = [story for number, story in enumerate(self._stories) if number % QUEUE_SHARE]
        self._lines = [iter(by_http[::2]), iter(by_http[1::2]), iter(by_queue)]
        self.by_queue = sum(len(story.turns) for story in by_queue)
        self.open = threading.Event()
        self.sent = 0
        self.limit = turns
        self.users: list[str] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to send and to ask."""
        pairs = list(zip(self._writers, self._lines, strict=True))
        self._threads = [threading.Thread(target=self._write, args=pair, daemon=True) for pair in pairs]
        for thread in (*self._threads, threading.Thread(target=self._ask, daemon=True)):
            thread.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        """Whether everything was sent."""
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """Stop, however much is left."""
        self.limit = sys.maxsize
        self._ended.set()
        self.open.set()
        for writer in self._writers:
            writer.given_up.set()
        for thread in self._threads:
            thread.join(30)
        for writer in self._writers:
            writer.close()

    def _write(self, writer: Writer, line: Iterator[Story]) -> None:
        for story in line:
            remaining = iter(story.turns)
            while part := list(islice(remaining, TURNS_A_REQUEST)):
                self.open.wait()
                if self._ended.is_set():
                    return
                writer.send(part)
                self._note(story.user, len(part))

    def _note(self, user: str, turns: int) -> None:
        with self._lock:
            self.sent += turns
            if self.sent >= self.limit:
                self.open.clear()
            if user not in self.users[-8:]:
                self.users.append(user)

    def _ask(self) -> None:
        """Ask now and then: what is found grows warm, and that is work too."""
        with self._cluster.client() as client:
            while not self._ended.wait(QUESTION_SECONDS):
                if self.users:
                    with contextlib.suppress(MemoryClientError):
                        client.search(self._chance.choice(QUESTIONS), user_id=self._chance.choice(self.users))


def _outbox(journal: ClientJournal) -> Path:
    return journal.path.with_name("outbox.sqlite")
