"""What can be asked is read from where it lies, or a sentence says why not."""

import json
from pathlib import Path

import pytest

from memoryos_pipeline.cli.eval_data import keep_first, read_data
from memoryos_pipeline.cli.readers import UnreadableFileError

MEMORY = {"3": {"time": "2023-05-01", "event": "Tom lost a shoe."}}
DIALOGUE = {
    "dialogue": ["<BOD>\n", "<Tom>: my foot is cold\n", "<Bot>: your shoe!\n"],
    "test-turn": [2],
    "relevant-id": [3],
}


@pytest.fixture
def madial(tmp_path: Path) -> Path:
    """A directory like MADial-Bench: memories an object a line, dialogues one after another, pretty or as a list."""
    (tmp_path / "MADial-Bench-en-memory.json").write_text(json.dumps(MEMORY) + "\n", encoding="utf-8")
    (tmp_path / "MADial-Bench-en-dialogue.json").write_text(json.dumps(DIALOGUE, indent=1) * 2, encoding="utf-8")
    (tmp_path / "MADial-Bench-zh-memory.json").write_text(json.dumps(MEMORY), encoding="utf-8")
    (tmp_path / "MADial-Bench-zh-dialogue.json").write_text(json.dumps([DIALOGUE]), encoding="utf-8")
    return tmp_path


class TestRead:
    def test_madial_bench(self, madial: Path) -> None:
        """Both languages, each a memory of its own, however the objects are written."""
        data = read_data(str(madial))

        assert [question.category for question in data.questions] == ["en", "en", "zh"]
        assert {turn["user_id"] for turn in data.turns} == {"madial-en", "madial-zh"}

    def test_a_directory_of_something_else(self, tmp_path: Path) -> None:
        """It is named, and so is what was looked for."""
        with pytest.raises(UnreadableFileError, match="MADial-Bench-en-memory"):
            read_data(str(tmp_path))

    def test_a_file_of_another_shape(self, madial: Path) -> None:
        """A dialogue without its parts ends with a sentence that names the directory."""
        (madial / "MADial-Bench-en-dialogue.json").write_text(json.dumps({"dialogue": []}), encoding="utf-8")
        with pytest.raises(UnreadableFileError, match="not MADial-Bench"):
            read_data(str(madial))

    def test_the_first_questions_need_their_users_only(self, madial: Path) -> None:
        """Turns of users nobody asks about are left out."""
        first = keep_first(read_data(str(madial)), 1)

        assert (len(first.questions), {turn["user_id"] for turn in first.turns}) == (1, {"madial-en"})
