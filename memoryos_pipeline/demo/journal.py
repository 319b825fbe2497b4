"""What was sent and what was acknowledged, on disk before anything else happens; later held against SQL."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from memoryos_pipeline.domain.turn_body import hash_turn, parse_turn
from memoryos_pipeline.readmodels.invariants import JournalEntry, TurnName

TurnBody = dict[str, Any]
NAME = ("user_id", "agent_id", "conversation_id", "client_turn_id")


class Publishes(Protocol):
    """Whatever records turns and returns a receipt each: the HTTP client."""

    def add_turns(self, turns: Sequence[TurnBody]) -> Any: ...


class JournaledClient:
    """Publishes like the client it wraps, and writes down each turn before it is sent and after it is acknowledged."""

    def __init__(self, client: Publishes, path: Path) -> None:
        self._client = client
        self._path = path

    def add_turns(self, turns: Sequence[TurnBody]) -> None:
        """Publish turns in order; a receipt names the turn by its conversation and client_turn_id."""
        names = [{field: turn[field] for field in NAME} for turn in turns]
        hashes = [hash_turn(parse_turn(turn)).hex() for turn in turns]
        sent = [{**name, "body_sha256": digest} for name, digest in zip(names, hashes, strict=True)]
        self._write(sent)
        receipts = self._client.add_turns(turns)
        self._write([{**line, "seq": receipt["seq"]} for line, receipt in zip(sent, receipts, strict=True)])

    def _write(self, lines: Sequence[dict[str, Any]]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())


def read_journal(path: Path) -> list[JournalEntry]:
    """Return one entry a turn: acknowledged with its seq, or sent with an unknown outcome."""
    entries: dict[TurnName, JournalEntry] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        user, agent, conversation, turn = (str(line[field]) for field in NAME)
        entry = JournalEntry(user, agent, conversation, turn, line.get("seq"), bytes.fromhex(line["body_sha256"]))
        entries[entry.name] = entry
    return list(entries.values())
