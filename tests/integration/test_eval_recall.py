"""`memoryos eval recall` starts a system, fills it, asks it, and leaves a line of figures and nothing else."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.locomo import locomo_samples

QUESTIONS = [
    {
        "question": "Which time did Ada1 think about the marathon in session 2?",
        "category": 4,
        "evidence": ["D2:1"],
    },
    {"question": "What did Bo1 think about?", "category": 5, "evidence": ["D1:1"]},
    {"question": "Nothing answers this.", "category": 3, "evidence": []},
]


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    """Run the command with the coarse embedder, which makes it quick."""
    command = [sys.executable, "-m", "memoryos_pipeline", "eval", "recall", *map(str, words), "--json"]
    environment = {**os.environ, "MEMORYOS_EMBEDDER": "hashing"}
    return subprocess.run(command, env=environment, capture_output=True, check=False, text=True)


def figures(*words: object) -> dict[str, Any]:
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    line: dict[str, Any] = json.loads(done.stdout)
    return line


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    samples = locomo_samples(samples=2, sessions=3, turns=8)
    samples[0]["qa"] = QUESTIONS
    path = tmp_path / "made.json"
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


class TestRecall:
    @pytest.mark.slow
    def test_a_locomo_file_is_measured(self, locomo: Path) -> None:
        """One line: every figure, category 5 beside the headline, what could not be asked counted, nothing left."""
        before = set(Path(tempfile.gettempdir()).glob("memoryos-demo-*"))
        line = figures("--data", locomo, "--ablate", "--profile", "default", "--profile", "lexical")

        assert (line["n"], line["by_category"]["5"]["n"], line["questions_without_evidence"]) == (1, 1, 1)
        assert line["r10"] == line["rec2000"] == 100.0
        keys = {
            "r5",
            "r20",
            "all10",
            "ndcg10",
            "mrr",
            "rec500",
            "rec1000",
            "session5",
            "interval95",
            "search_ms",
        }
        assert keys <= line.keys()
        assert (line["degraded"], line["dead"]) == (0, 0)
        assert line["auroc5_n"] == {"wrong_person": 1, "right_person": 1, "no_doubt": 0}
        assert 0 <= line["auroc5"] <= 1
        assert line["profiles"].keys() == {"default", "lexical"}
        assert line["ablation_r10"]["nothing"] == 100.0
        assert line["versions"]["embedder"] == "hashing"
        assert line["turns"] == 24, "only the user who is asked about is needed"
        assert set(Path(tempfile.gettempdir()).glob("memoryos-demo-*")) == before

    @pytest.mark.slow
    def test_cold_memory_is_asked_as_well(self) -> None:
        """With everything archived the sample's first questions still find their turns."""
        line = figures("--data", "sample", "--limit-questions", 4, "--tiers", "cold")

        assert (line["n"], line["tiers"], line["dead"]) == (4, "cold", 0)
        assert line["r10"] > 0
        assert "page" not in line["results_by_kind"], "an archived page is no result"

    def test_what_cannot_be_measured_is_said(self, tmp_path: Path) -> None:
        """A file without questions, or one that is missing, ends with a sentence before anything is started."""
        turns = tmp_path / "turns.jsonl"
        turns.write_text("", encoding="utf-8")
        for path in (tmp_path / "missing.json", turns):
            done = run("--data", path)
            assert done.returncode == 1
            assert "Traceback" not in done.stderr
            assert path.name in done.stderr

    def test_one_source_of_questions_is_named(self) -> None:
        """A file and our own corpus at once, or neither, is refused before anything is started."""
        assert run().returncode == run("--data", "sample", "--corpus").returncode == 2

    def test_a_running_system_keeps_its_clock(self) -> None:
        """--here and cold together are refused: that would move the clock of a system in use."""
        for tiers in ("cold", "each"):
            assert run("--data", "sample", "--here", "--tiers", tiers).returncode == 2
