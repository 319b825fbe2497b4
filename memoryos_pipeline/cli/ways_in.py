"""The two ways turns go in from a file, over HTTP and through the queue, and what each counted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from memoryos_pipeline.client.errors import MemoryClientError
from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.client.outbox import Conversation, Refusal, entry_of
from memoryos_pipeline.client.publisher import TurnPublisher

TurnBody = dict[str, Any]
NO_PROGRESS_SECONDS = 60.0


@dataclass(slots=True)
class Count:
    """How many turns were recorded now, were there already, or were refused."""

    recorded: int = 0
    already_there: int = 0
    refused: list[Refusal] = field(default_factory=list)


class WayIn(Protocol):
    """Gets turns recorded, in order, and counts them. Returns when their receipts exist."""

    count: Count

    def add_turns(self, turns: Sequence[TurnBody]) -> None: ...


class StalledError(MemoryClientError):
    """Nothing was recorded for a minute."""

    def __init__(self, pending: int) -> None:
        super().__init__(
            f"{pending} turns on the queue have no receipt after {NO_PROGRESS_SECONDS:.0f} s: is a worker up?"
        )


class OverHttp:
    """Requests of a bounded number of turns, each answered after its commit."""

    def __init__(self, client: MemoryClient, *, batch: int, advanced: Callable[[int], object]) -> None:
        self._client, self._batch, self._advanced = client, batch, advanced
        self.count = Count()

    def add_turns(self, turns: Sequence[TurnBody]) -> None:
        for start in range(0, len(turns), self._batch):
            receipts = self._client.add_turns(turns[start : start + self._batch])
            known = sum(receipt["duplicate"] for receipt in receipts)
            self.count.already_there += known
            self.count.recorded += len(receipts) - known
            self._advanced(len(receipts))


class ThroughQueue:
    """Messages on the queue `ingest`; what is recorded already is not published again."""

    def __init__(self, client: MemoryClient, publisher: TurnPublisher, *, advanced: Callable[[int], object]) -> None:
        self._client, self._publisher, self._advanced = client, publisher, advanced
        self.count = Count()

    def add_turns(self, turns: Sequence[TurnBody]) -> None:
        fresh = unrecorded(self._client, turns)
        self.count.already_there += len(turns) - len(fresh)
        self._advanced(len(turns) - len(fresh))
        self._publisher.put(fresh)
        while self._flush():
            continue

    def _flush(self) -> int:
        """Flush for as long as something moves; return how many turns still wait. Raises StalledError."""
        flushed = self._publisher.flush(NO_PROGRESS_SECONDS)
        self.count.recorded += flushed.recorded
        self.count.refused += flushed.refused
        moved = flushed.recorded + len(flushed.refused)
        self._advanced(moved)
        if flushed.pending and not moved:
            raise StalledError(flushed.pending)
        return flushed.pending


def unrecorded(client: MemoryClient, turns: Sequence[TurnBody]) -> list[TurnBody]:
    """Return the turns that have no receipt for this very body, in their order."""
    entries = [entry_of(turn) for turn in turns]
    recorded: dict[tuple[Conversation, str], str] = {}
    for conversation, keys in _keys_by_conversation((each.conversation, each.client_turn_id) for each in entries):
        for receipt in client.receipts(conversation, keys):
            recorded[conversation, receipt["client_turn_id"]] = receipt["body_sha256"]
    return [each.body for each in entries if recorded.get((each.conversation, each.client_turn_id)) != each.digest]


def _keys_by_conversation(keys: Iterable[tuple[Conversation, str]]) -> Iterator[tuple[Conversation, list[str]]]:
    for conversation, together in groupby(sorted(set(keys)), key=lambda pair: pair[0]):
        yield conversation, [key for _, key in together]
