"""Peers are given questions without answers, and come out of it in one table."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from memoryos_pipeline.evaluation.questions import DataSet, Question

HERE = Path(__file__).resolve().parents[3] / "ops" / "benchmarks" / "peers"
TURN = {"user_id": "u", "client_turn_id": "a", "speaker": "Ada", "content": "It rained.", "occurred_at": "2026-01-01"}


@pytest.fixture(scope="module")
def run() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("peers_run", HERE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["peers_run"] = module
    spec.loader.exec_module(module)
    return module


def question(category: str = "1") -> Question:
    """A question answered by turn a."""
    return Question("q", category, "u", "default", "Did it rain?", "2026-01-02", frozenset("a"))


class TestRun:
    def test_no_answer_is_given_away(self, run: ModuleType, tmp_path: Path) -> None:
        """A peer reads turns and questions, of the headline only, and nothing of what answers them."""
        run.write_questions(DataSet([TURN], [question(), question("5")], {}), tmp_path)
        asked = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]

        assert asked == [{"user": "u", "id": "q", "text": "Did it rain?"}]

    def test_all_are_scored_alike(self, run: ModuleType) -> None:
        """Ranked turn ids become the same metrics as ours."""
        data = DataSet([TURN], [question()], {"u": {"a": "one", "b": "one"}})

        assert run.score(data, {"q": ["b", "a"]})["r5"] == 100.0
        assert run.score(data, {"q": ["b"]})["r10"] == 0.0

    def test_the_best_comes_last(self, run: ModuleType) -> None:
        """One line a system, by R@10."""
        rows = {name: dict.fromkeys(run.COLUMNS, value) for name, value in (("good", 80.0), ("poor", 40.0))}
        lines = run.table(rows).splitlines()

        assert [line.split("|")[1].strip() for line in lines[2:]] == ["poor", "good"]

    def test_every_peer_has_an_adapter(self, run: ModuleType) -> None:
        """What can be asked for can be run."""
        assert {path.stem for path in (HERE / "adapters").glob("*.py")} - {"__init__"} == set(run.PEERS)
