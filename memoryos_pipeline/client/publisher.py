"""Publishes turns through the queue without losing one: they wait in an outbox until their receipt can be read.

Not at-most-once, not exactly-once delivery: messages repeat, turns are recorded once, because the key is the same.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memoryos_pipeline.client.broker import BROKER_ERRORS, MAX_PAYLOAD_BYTES, MAX_TURNS, IngestQueue
from memoryos_pipeline.client.errors import ErasedError, InvalidRequestError, NoAnswerError, UnavailableError
from memoryos_pipeline.client.outbox import Conversation, Entry, Outbox, Refusal, entry_of
from memoryos_pipeline.client.transport import json_bytes
from memoryos_pipeline.client.writing import WritingClient

CONVERSATIONS_IN_FLIGHT = 64
REPUBLISH_SECONDS = 5.0
LONGEST_REPUBLISH_SECONDS = 60.0
ASK_AFTER_ATTEMPTS = 3
"""Published this often and due again without any receipt, the oldest turn of a message is put to the API itself."""

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.25
AWAY_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of the outbox: receipts read, turns refused in this flush, turns that still wait."""

    recorded: int
    refused: list[Refusal]
    pending: int


@dataclass(slots=True)
class _Flight:
    """The one message of a conversation that is out; `due` is when it is published again (monotonic seconds)."""

    entries: list[Entry]
    due: float
    attempts: int = 0
    is_silent: bool = False
    """Published often enough without any receipt, so that the API is to be asked about its oldest turn."""


@dataclass(slots=True)
class _Tally:
    recorded: int = 0
    refused: list[Refusal] = field(default_factory=list)
    settled: int = 0


class TurnPublisher:
    """Puts turns on the queue `ingest`, one message in flight a conversation, again and again until recorded."""

    def __init__(
        self, broker_url: str, api_url: str, api_key: str, outbox: Outbox, *, broker_key_prefix: str = "mem:"
    ) -> None:
        self._queue = IngestQueue(broker_url, key_prefix=broker_key_prefix)
        self._client = WritingClient(api_url, api_key)
        self._api_key = api_key
        self._outbox = outbox
        self._flights: dict[Conversation, _Flight] = {}

    def put(self, turns: Sequence[dict[str, Any]]) -> int:
        """Check turn bodies and store them in the outbox, all or none; return how many are new to it.

        Returns when they are on disk; nothing is published yet. Raises InvalidTurnError, or TurnConflictError
        when another body waits under the same key.
        """
        return self._outbox.put([entry_of(body) for body in turns])

    def flush(self, timeout_seconds: float = 60.0) -> Flushed:
        """Publish until every waiting turn is recorded or refused, or the time is over; never loses what is left.

        A broker, worker or API that is away only costs time. Raises UnauthorizedError when the key is refused.
        """
        deadline, pause, tally = time.monotonic() + timeout_seconds, FIRST_PAUSE_SECONDS, _Tally()
        while self._outbox.pending() and time.monotonic() < deadline:
            settled = tally.settled
            try:
                self._publish_what_is_due()
                self._collect(tally)
            except (NoAnswerError, UnavailableError):
                pause = AWAY_PAUSE_SECONDS
            else:
                moved = tally.settled > settled
                pause = FIRST_PAUSE_SECONDS if moved else min(LONGEST_PAUSE_SECONDS, pause * 1.5)
            time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
        return Flushed(tally.recorded, tally.refused, self._outbox.pending())

    def refusals(self) -> list[Refusal]:
        """Return every turn that was refused and not discarded yet, also from earlier runs."""
        return self._outbox.refusals()

    def discard(self, refusal: Refusal) -> None:
        """Drop a refused turn from the outbox."""
        self._outbox.remove(refusal.conversation, [refusal.client_turn_id])

    def close(self) -> None:
        """Close the connections; what waits stays in the outbox."""
        self._queue.close()
        self._client.close()

    def _publish_what_is_due(self) -> None:
        for conversation in self._outbox.conversations(CONVERSATIONS_IN_FLIGHT):
            if conversation not in self._flights:
                entries = _one_message(self._outbox.waiting(conversation, MAX_TURNS))
                self._flights[conversation] = _Flight(entries, due=0.0)
            if self._flights[conversation].due <= time.monotonic():
                self._publish(conversation, self._flights[conversation])

    def _publish(self, conversation: Conversation, flight: _Flight) -> None:
        try:
            self._queue.publish(self._api_key, [entry.body for entry in flight.entries])
        except BROKER_ERRORS:
            flight.due = time.monotonic() + AWAY_PAUSE_SECONDS
            return
        flight.is_silent = flight.attempts >= ASK_AFTER_ATTEMPTS
        wait_seconds = min(LONGEST_REPUBLISH_SECONDS, REPUBLISH_SECONDS * 2**flight.attempts)
        flight.attempts += 1
        flight.due = time.monotonic() + wait_seconds
        self._outbox.count_attempt(conversation, [entry.client_turn_id for entry in flight.entries])

    def _collect(self, tally: _Tally) -> None:
        for conversation, flight in list(self._flights.items()):
            keys = [entry.client_turn_id for entry in flight.entries]
            told = {each["client_turn_id"]: each["body_sha256"] for each in self._client.receipts(conversation, keys)}
            silent = _silent(flight, told)
            self._settle(conversation, flight, told, tally)
            for entry in silent:
                flight.is_silent = self._ask(entry, flight, tally)
            if not flight.entries:
                del self._flights[conversation]

    def _settle(self, conversation: Conversation, flight: _Flight, told: dict[str, str], tally: _Tally) -> None:
        """Take recorded turns out of the outbox; a receipt for another body is a refusal, not a success."""
        answered = [entry for entry in flight.entries if entry.client_turn_id in told]
        same = [entry.client_turn_id for entry in answered if told[entry.client_turn_id] == entry.digest]
        self._outbox.remove(conversation, same)
        for entry in answered:
            if told[entry.client_turn_id] != entry.digest:
                self._refuse(entry, tally, code="client_turn_id_conflict", field=None)
        flight.entries = [entry for entry in flight.entries if entry.client_turn_id not in told]
        tally.recorded += len(same)
        tally.settled += len(answered)

    def _ask(self, entry: Entry, flight: _Flight, tally: _Tally) -> bool:
        """Put one turn to the API itself, which records it or says why it never will; True when it refused."""
        refused = False
        try:
            self._client.add_turns([entry.body])
        except (InvalidRequestError, ErasedError) as error:
            self._refuse(entry, tally, code=error.code, field=error.field)
            refused = True
        else:
            self._outbox.remove(entry.conversation, [entry.client_turn_id])
            tally.recorded += 1
        flight.entries.remove(entry)
        tally.settled += 1
        return refused

    def _refuse(self, entry: Entry, tally: _Tally, *, code: str, field: str | None) -> None:
        self._outbox.refuse(entry.conversation, entry.client_turn_id, code=code, field=field)
        tally.refused.append(Refusal(entry.conversation, entry.client_turn_id, code, field, entry.body))


def _silent(flight: _Flight, told: dict[str, str]) -> list[Entry]:
    """Return the turns to ask the API about, oldest first, so that order is kept.

    Those that a later turn of the same message has overtaken were dropped by the worker. Without any receipt
    after three publishes it is the oldest: the worker may drop it, or there may be no worker.
    """
    last = max((place for place, entry in enumerate(flight.entries) if entry.client_turn_id in told), default=0)
    overtaken = [entry for entry in flight.entries[:last] if entry.client_turn_id not in told]
    return overtaken or (flight.entries[:1] if flight.is_silent and not told else [])


def _one_message(entries: list[Entry]) -> list[Entry]:
    """Return the longest beginning that fits in one message; at least one turn."""
    size_bytes, taken = 0, 0
    for entry in entries:
        size_bytes += len(json_bytes(entry.body))
        if taken and size_bytes > MAX_PAYLOAD_BYTES:
            break
        taken += 1
    return entries[:taken]
