"""Files become turn bodies, whole and in order."""

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memoryos_pipeline.cli.readers import UnreadableFileError, read_turns, session_start
from tests.locomo import SHARED_LOCOMO, locomo_file, locomo_samples, write_locomo

UTC_ZONE = ZoneInfo("UTC")
TURN = {
    "user_id": "maya", "agent_id": "companion", "conversation_id": "c", "client_turn_id": "1", "role": "user",
    "content": "こんにちは", "occurred_at": "2026-05-04T18:02:00-05:00",
}  # fmt: skip


def _write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


class TestReadJsonLines:
    def test_lines_are_turns_as_they_stand(self, tmp_path: Path) -> None:
        """Every line that is not blank is one turn, unchanged."""
        path = _write(tmp_path / "a.jsonl", TURN, "", TURN | {"client_turn_id": "2", "content": "a\u2028b"}, "")

        assert [turn["client_turn_id"] for turn in read_turns(path, UTC_ZONE)] == ["1", "2"]
        assert read_turns(path, UTC_ZONE)[0] == TURN

    @pytest.mark.parametrize(
        ("line", "problem"),
        [("{", "not JSON"), ("[1]", "body"), ('{"role": "user"}', "user_id"), (TURN | {"role": "cat"}, "role")],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, line: Any, problem: str) -> None:
        """An error says file, line and field, so it can be found."""
        path = _write(tmp_path / "a.jsonl", TURN, "", line)

        with pytest.raises(UnreadableFileError, match=rf"a\.jsonl:3: .*{problem}"):
            read_turns(path, UTC_ZONE)

    def test_a_missing_or_foreign_file_is_a_sentence(self, tmp_path: Path) -> None:
        """No traceback for a path that is wrong or bytes that are no text."""
        (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe")

        for name in ("nowhere.jsonl", "b.jsonl"):
            with pytest.raises(UnreadableFileError, match=name):
                read_turns(tmp_path / name, UTC_ZONE)


class TestReadLocomo:
    def test_every_turn_is_read_in_session_order(self, tmp_path: Path) -> None:
        """Sessions come by number (10 after 9), a session that has only a date adds nothing."""
        path = write_locomo(tmp_path / "l.json", samples=2, sessions=11, turns=4)
        turns = read_turns(path, UTC_ZONE)

        assert len(turns) == 2 * 11 * 4
        assert [turn["client_turn_id"] for turn in turns[:44:4]] == [f"D{session}:1" for session in range(1, 12)]
        assert {turn["conversation_id"] for turn in turns} == {"made-1", "made-2"}

    def test_speakers_become_roles_and_pictures_a_placeholder(self, tmp_path: Path) -> None:
        """speaker_a is the user, speaker_b the assistant; a caption stands behind the text."""
        turns = read_turns(write_locomo(tmp_path / "l.json"), UTC_ZONE)

        assert (turns[0]["role"], turns[0]["speaker"]) == ("assistant", "Bo1")
        assert (turns[1]["role"], turns[1]["speaker"]) == ("user", "Ada1")
        assert turns[3]["content"].endswith("\n[image: a photo of a marathon]")

    def test_time_strictly_increases_within_a_conversation(self, tmp_path: Path) -> None:
        """Also when a session is dated before the end of the one before it."""
        samples = locomo_samples(samples=1, sessions=2, turns=6)
        samples[0]["conversation"]["session_2_date_time"] = samples[0]["conversation"]["session_1_date_time"]
        path = _write(tmp_path / "l.json", samples)
        moments = [datetime.fromisoformat(turn["occurred_at"]) for turn in read_turns(path, UTC_ZONE)]

        assert all((later - earlier).total_seconds() >= 30 for earlier, later in pairwise(moments))

    def test_dates_are_local_to_the_time_zone(self, tmp_path: Path) -> None:
        """The session date is wall time there, with the offset of that day."""
        seoul = read_turns(write_locomo(tmp_path / "l.json"), ZoneInfo("Asia/Seoul"))

        assert seoul[0]["occurred_at"] == "2023-01-02T13:01:00+09:00"

    def test_an_hour_that_does_not_exist_is_moved_not_lost(self) -> None:
        """Clocks that skip an hour still give increasing turns."""
        start = session_start("2:30 am on 12 March, 2023", ZoneInfo("America/New_York"))

        assert start.astimezone(UTC_ZONE) == datetime(2023, 3, 12, 7, 30, tzinfo=UTC_ZONE)

    def test_another_shape_is_a_sentence(self, tmp_path: Path) -> None:
        """A list of anything else, or a date in another form, says which sample is meant."""
        odd = locomo_samples(samples=1)
        odd[0]["conversation"]["session_1_date_time"] = "2023-01-02"

        for content, problem in (([{"a": 1}], "sample 0"), (odd, "not a session date")):
            with pytest.raises(UnreadableFileError, match=problem):
                read_turns(_write(tmp_path / "l.json", content), UTC_ZONE)

    def test_the_shared_half_goes_in_whole(self, tmp_path: Path) -> None:
        """Every dialogue turn of the development half is a valid turn with a key of its own."""
        path = locomo_file(tmp_path / "l.json")
        turns = read_turns(path, UTC_ZONE)

        assert len(turns) == (3019 if path == SHARED_LOCOMO else 5 * 20 * 30)
        assert len({(turn["conversation_id"], turn["client_turn_id"]) for turn in turns}) == len(turns)
