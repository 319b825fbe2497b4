"""Where turns wait until their receipt can be read: a small protocol, and an SQLite file that honours it."""

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from memoryos_pipeline.domain.errors import TurnConflictError
from memoryos_pipeline.domain.turn_body import hash_turn, parse_turn


class Conversation(NamedTuple):
    """Whose conversation: order is kept within one, never promised across two."""

    user_id: str
    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn without a receipt. `digest` is the hex SHA-256 under which the pipeline will know its body."""

    conversation: Conversation
    client_turn_id: str
    digest: str
    body: dict[str, Any]
    attempts: int = 0
    """How often it was published."""


def entry_of(body: dict[str, Any]) -> Entry:
    """Check a turn body exactly as the worker will and return its entry. Raises InvalidTurnError."""
    turn = parse_turn(body)
    conversation = Conversation(turn.user_id, turn.agent_id, turn.conversation_id)
    return Entry(conversation, turn.client_turn_id, hash_turn(turn).hex(), body)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A turn the pipeline will never record as it is, and why. It stays in the outbox until it is discarded."""

    conversation: Conversation
    client_turn_id: str
    code: str
    field: str | None
    body: dict[str, Any]


class Outbox(Protocol):
    """What a publisher needs of a store; every call is durable when it returns."""

    def put(self, entries: Sequence[Entry]) -> int:
        """Add turns, all or none, and return how many are new. The same turn again is nothing new.

        Raises TurnConflictError when a waiting turn has the same key and another body; a refused one is replaced.
        """

    def conversations(self, limit: int) -> list[Conversation]:
        """Return conversations with waiting turns, the longest waiting first."""

    def waiting(self, conversation: Conversation, limit: int) -> list[Entry]:
        """Return a conversation's oldest waiting turns in the order they were put."""

    def count_attempt(self, conversation: Conversation, client_turn_ids: Sequence[str]) -> None:
        """Count one more publish of these turns."""

    def remove(self, conversation: Conversation, client_turn_ids: Sequence[str]) -> None:
        """Forget turns: their receipt was read, or their refusal was dealt with."""

    def refuse(self, conversation: Conversation, client_turn_id: str, *, code: str, field: str | None) -> None:
        """Stop publishing a turn and keep it with the reason."""

    def refusals(self) -> list[Refusal]:
        """Return what was refused and not yet removed."""

    def pending(self) -> int:
        """Return how many turns still wait for a receipt."""


SCHEMA = """
create table if not exists outbox (
    position        integer primary key autoincrement,
    conversation    text not null,
    client_turn_id  text not null,
    digest          text not null,
    payload         text not null,
    state           text not null default 'waiting' check (state in ('waiting', 'refused')),
    attempts        integer not null default 0,
    code            text,
    field           text,
    unique (conversation, client_turn_id)
)
"""
BY_STATE = "create index if not exists outbox_by_state on outbox (state, conversation, position)"
FIND = "select state, digest from outbox where conversation = ? and client_turn_id = ?"
ADD = "insert into outbox (conversation, client_turn_id, digest, payload) values (?, ?, ?, ?)"
DROP = "delete from outbox where conversation = ? and client_turn_id = ?"
CONVERSATIONS = """
select conversation from outbox where state = 'waiting' group by conversation order by min(position) limit ?
"""
WAITING = """
select client_turn_id, digest, payload, attempts from outbox
 where state = 'waiting' and conversation = ? order by position limit ?
"""
ATTEMPT = "update outbox set attempts = attempts + 1 where conversation = ? and client_turn_id = ?"
REFUSE = "update outbox set state = 'refused', code = ?, field = ? where conversation = ? and client_turn_id = ?"
REFUSALS = """
select conversation, client_turn_id, code, field, payload from outbox where state = 'refused' order by position
"""
PENDING = "select count(*) from outbox where state = 'waiting'"


class SQLiteOutbox:
    """An outbox in one file: write-ahead log, synced at every commit, readable by its owner alone.

    Threads may share it. Holds turns as sent, never the API key.
    """

    def __init__(self, path: Path | str) -> None:
        Path(path).touch(mode=0o600)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        for statement in ("pragma journal_mode = wal", "pragma synchronous = full", SCHEMA, BY_STATE):
            self._connection.execute(statement)

    def close(self) -> None:
        """Close the file; what waits stays in it."""
        with self._lock:
            self._connection.close()

    def put(self, entries: Sequence[Entry]) -> int:
        with self._lock, self._connection:
            self._connection.execute("begin immediate")
            return sum(self._put_one(entry) for entry in entries)

    def conversations(self, limit: int) -> list[Conversation]:
        return [Conversation(*json.loads(row[0])) for row in self._read(CONVERSATIONS, limit)]

    def waiting(self, conversation: Conversation, limit: int) -> list[Entry]:
        rows = self._read(WAITING, _key(conversation), limit)
        return [Entry(conversation, key, digest, json.loads(body), attempts) for key, digest, body, attempts in rows]

    def count_attempt(self, conversation: Conversation, client_turn_ids: Sequence[str]) -> None:
        self._write(ATTEMPT, [(_key(conversation), key) for key in client_turn_ids])

    def remove(self, conversation: Conversation, client_turn_ids: Sequence[str]) -> None:
        self._write(DROP, [(_key(conversation), key) for key in client_turn_ids])

    def refuse(self, conversation: Conversation, client_turn_id: str, *, code: str, field: str | None) -> None:
        self._write(REFUSE, [(code, field, _key(conversation), client_turn_id)])

    def refusals(self) -> list[Refusal]:
        return [
            Refusal(Conversation(*json.loads(conversation)), key, code, field, json.loads(payload))
            for conversation, key, code, field, payload in self._read(REFUSALS)
        ]

    def pending(self) -> int:
        return int(self._read(PENDING)[0][0])

    def _put_one(self, entry: Entry) -> int:
        key = (_key(entry.conversation), entry.client_turn_id)
        found = self._connection.execute(FIND, key).fetchone()
        if found == ("waiting", entry.digest):
            return 0
        if found and found[0] == "waiting":
            raise TurnConflictError(entry.client_turn_id)
        self._connection.execute(DROP, key)
        self._connection.execute(ADD, (*key, entry.digest, json.dumps(entry.body, ensure_ascii=False)))
        return 1

    def _read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._lock, self._connection:
            self._connection.execute("begin immediate")
            self._connection.executemany(statement, rows)


def _key(conversation: Conversation) -> str:
    return json.dumps(conversation, ensure_ascii=False)
