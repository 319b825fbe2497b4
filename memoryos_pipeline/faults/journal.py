"""What a client knows of its turns, on disk: sent, and then recorded, refused, or nobody knows.

One JSON object a line, synced before the client goes on, so that what it knew outlives it.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryos_pipeline.domain.turn_body import hash_turn, parse_turn
from memoryos_pipeline.readmodels.invariants import JournalEntry, TurnName


def name_of(turn: Mapping[str, Any]) -> TurnName:
    """Return under which name a turn body is kept."""
    return (
        turn["user_id"],
        turn.get("agent_id", "default"),
        turn.get("conversation_id", "default"),
        turn["client_turn_id"],
    )


@dataclass
class Known:
    """What is known of one turn: its body's hash, the numbers it was acknowledged under, how its last sending ended.

    `was_unknown`: some sending of it got no answer.
    """

    sha256: bytes
    seqs: set[int] = field(default_factory=set)
    outcome: str = "invoke"
    was_unknown: bool = False


class ClientJournal:
    """Written by any number of threads of one process. A turn may be sent again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = path.open("ab")

    def invoke(self, turns: Iterable[dict[str, Any]]) -> None:
        """Note that turns are about to be sent."""
        self._write("invoke", [[*name_of(turn), hash_turn(parse_turn(turn)).hex()] for turn in turns])

    def ok(self, turns: Sequence[Mapping[str, Any]], seqs: Sequence[int]) -> None:
        """Note under which numbers turns were acknowledged."""
        self._write("ok", [[*name_of(turn), seq] for turn, seq in zip(turns, seqs, strict=True)])

    def fail(self, turns: Iterable[Mapping[str, Any]]) -> None:
        """Note that turns were refused: they must not be there."""
        self._write("fail", [[*name_of(turn), None] for turn in turns])

    def unknown(self, turns: Iterable[Mapping[str, Any]]) -> None:
        """Note that no answer came: they may be there or not."""
        self._write("unknown", [[*name_of(turn), None] for turn in turns])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, outcome: str, turns: list[list[Any]]) -> None:
        line = json.dumps({"outcome": outcome, "turns": turns}, ensure_ascii=False).encode()
        with self._lock:
            self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def read_journal(path: Path) -> dict[TurnName, Known]:
    """Return what a journal says of every turn."""
    known: dict[TurnName, Known] = {}
    for outcome, name, value in _lines(path):
        if outcome == "invoke":
            known.setdefault(name, Known(bytes.fromhex(str(value))))
        elif outcome == "ok":
            known[name].seqs.add(int(value))
        known[name].outcome = outcome
        known[name].was_unknown |= outcome == "unknown"
    return known


def _lines(path: Path) -> Iterator[tuple[str, TurnName, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            said = json.loads(line)
            for user, agent, conversation, turn, value in said["turns"]:
                yield said["outcome"], (user, agent, conversation, turn), value


def entries_of(known: Mapping[TurnName, Known]) -> list[JournalEntry]:
    """Return entries to compare with the database; a turn acknowledged under two numbers has two."""
    return [
        JournalEntry(*name, seq=seq, body_sha256=each.sha256)
        for name, each in known.items()
        for seq in (*sorted(each.seqs), *(() if each.seqs else (None,)))
    ]
