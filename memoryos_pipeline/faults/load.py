"""Turns to send, in four languages, and the two ways in: HTTP, and the queue with an outbox. Both keep a journal."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from memoryos_pipeline.client.errors import ApiError, NoAnswerError, UnavailableError
from memoryos_pipeline.client.outbox import Conversation, SQLiteOutbox
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.sample import sample_turns

Turn = dict[str, Any]
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
LANGUAGES = ("en", "ja", "ko", "zh")
PIECE_TURNS = 15
AGAIN_SECONDS = 0.2
FLUSH_SECONDS = 2.0


def conversation(turns: int, *, user: str, lang: str = "en", name: str = "c", seed: int = 0) -> list[Turn]:
    """Return the turns of one conversation, a minute apart: a piece of what the sample's people say, over and over.

    What comes back grows hot, so that it is distilled and merged as well.
    """
    told = [turn for turn in sample_turns() if turn["metadata"]["lang"] == lang]
    begin = Random(f"{seed} {user} {name}").randrange(len(told))  # noqa: S311 - repeatable on purpose
    return [_turn(told[(begin + n % PIECE_TURNS) % len(told)], n, user, name) for n in range(turns)]


def _turn(told: Turn, n: int, user: str, name: str) -> Turn:
    return {
        "user_id": user,
        "agent_id": told["agent_id"],
        "conversation_id": name,
        "client_turn_id": f"{name}-{n}",
        "role": told["role"],
        "speaker": told["speaker"],
        "content": f"{told['content']} ({n})",
        "occurred_at": (START + timedelta(minutes=n)).isoformat(),
    }


class Writer(ABC):
    """Sends turns, and closes its connections when its block ends."""

    def __init__(self) -> None:
        self.given_up = threading.Event()
        """Set from outside to stop sending what is not answered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def send(self, turns: Sequence[Turn]) -> bool:
        """Send turns until it is known what became of them; tell whether all of them are acknowledged."""

    @abstractmethod
    def close(self) -> None:
        """Close its connections."""


class HttpWriter(Writer):
    """Sends requests one after the other, each again and again until it is answered, and journals every outcome."""

    def __init__(self, cluster: Cluster, journal: ClientJournal) -> None:
        super().__init__()
        self._client = cluster.client()
        self._journal = journal

    def send(self, turns: Sequence[Turn]) -> bool:
        """Send turns as one request until they are acknowledged or refused; tell whether they were acknowledged."""
        while not self.given_up.is_set():
            outcome = self._send_once(turns)
            if outcome is not None:
                return outcome
            self.given_up.wait(AGAIN_SECONDS)
        return False

    def _send_once(self, turns: Sequence[Turn]) -> bool | None:
        self._journal.invoke(turns)
        try:
            answer = self._client.request("POST", "/v1/turns", json={"turns": list(turns)}, repeat=False)
        except (NoAnswerError, UnavailableError):
            self._journal.unknown(turns)
            return None
        except ApiError:
            self._journal.fail(turns)
            return False
        self._journal.ok(turns, [receipt["seq"] for receipt in answer["turns"]])
        return True

    def close(self) -> None:
        """Close its connection."""
        self._client.close()


class QueueWriter(Writer):
    """Puts turns into an outbox and publishes until each has its receipt. A turn is acknowledged by its receipt."""

    def __init__(self, cluster: Cluster, journal: ClientJournal, outbox: Path) -> None:
        super().__init__()
        self._outbox = SQLiteOutbox(outbox)
        self._publisher = cluster.publisher(self._outbox)
        self._client = cluster.client()
        self._journal = journal

    def send(self, turns: Sequence[Turn]) -> bool:
        """Publish turns of one or more conversations; tell whether all of them were recorded."""
        self._journal.invoke(turns)
        self._publisher.put(turns)
        while not self.given_up.is_set():
            told = self._publisher.flush(FLUSH_SECONDS)
            if not told.pending:
                return self._acknowledge(turns)
        self._journal.unknown(turns)
        return False

    def _acknowledge(self, turns: Sequence[Turn]) -> bool:
        by_conversation: dict[Conversation, list[Turn]] = {}
        for turn in turns:
            place = Conversation(turn["user_id"], turn["agent_id"], turn["conversation_id"])
            by_conversation.setdefault(place, []).append(turn)
        told = [self._read_receipts(place, sent) for place, sent in by_conversation.items()]
        return all(told)

    def _read_receipts(self, place: Conversation, sent: Sequence[Turn]) -> bool:
        keys = [turn["client_turn_id"] for turn in sent]
        seqs: dict[str, int] = {}
        while not self.given_up.is_set():
            try:
                seqs = {receipt["client_turn_id"]: receipt["seq"] for receipt in self._client.receipts(place, keys)}
                break
            except (NoAnswerError, UnavailableError):
                self.given_up.wait(AGAIN_SECONDS)
        known = [turn for turn in sent if turn["client_turn_id"] in seqs]
        missing = [turn for turn in sent if turn["client_turn_id"] not in seqs]
        self._journal.ok(known, [seqs[turn["client_turn_id"]] for turn in known])
        if missing:  # the publisher said recorded, the API knows nothing: whoever judges must see it as lost
            self._journal.ok(missing, [0] * len(missing))
        return not missing

    def close(self) -> None:
        """Close its connections; what waits stays in the outbox."""
        self._publisher.close()
        self._outbox.close()
        self._client.close()
