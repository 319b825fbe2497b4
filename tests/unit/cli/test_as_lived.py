"""Lived time steps through the turns' own dates, forward only, and sweeps every lived week."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memoryos_pipeline.cli.as_lived import Levers, Step, publish_as_lived

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


class Diary:
    """Writes down what the driver did, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.steps: list[Step] = []

    def add_turns(self, turns: Sequence[dict[str, Any]]) -> None:
        self.lines.append(("turns", [turn["client_turn_id"] for turn in turns]))

    def levers(self) -> Levers:
        return Levers(
            clock=lambda moment: self.lines.append(("clock", (moment - START) / timedelta(days=1))),
            sweep=lambda: self.lines.append(("sweep", None)),
            wait=lambda: self.lines.append(("wait", None)),
            progress=self.steps.append,
        )


def _turn(day: float, key: str, conversation: str = "a") -> dict[str, Any]:
    at = (START + timedelta(days=day)).isoformat()
    ids = {"user_id": "u", "agent_id": "g", "conversation_id": conversation, "client_turn_id": key}
    return {**ids, "occurred_at": at}


class TestPublishAsLived:
    def test_the_clock_stands_at_each_days_last_turn(self) -> None:
        """Turns of one day over all conversations go together, after the clock was set."""
        diary = Diary()
        publish_as_lived(diary, [_turn(0, "1"), _turn(1, "3"), _turn(0.25, "2", "b")], levers=diary.levers())

        assert diary.lines == [
            ("clock", 0.25), ("turns", ["1", "2"]), ("clock", 1), ("turns", ["3"]),
            ("wait", None), ("clock", 1), ("sweep", None), ("wait", None),
        ]  # fmt: skip

    def test_silent_weeks_are_swept_one_by_one(self) -> None:
        """A gap of a month is lived through, so that things cool and fade at their own dates."""
        diary = Diary()
        publish_as_lived(diary, [_turn(0, "1"), _turn(30, "2")], levers=diary.levers())

        assert [at for name, at in diary.lines if name == "clock"] == [0, 7, 14, 21, 28, 30, 30]

    def test_life_may_go_on_after_the_last_turn(self) -> None:
        """`until` lets weeks pass at the end."""
        diary = Diary()
        publish_as_lived(diary, [_turn(0, "1")], levers=diary.levers(), until=START + timedelta(days=16))

        assert [at for name, at in diary.lines if name == "clock"] == [0, 7, 14, 16]

    def test_a_conversation_keeps_its_order(self) -> None:
        """A turn dated before its predecessor is lived with it, and the clock never goes back."""
        diary = Diary()
        publish_as_lived(diary, [_turn(5, "1"), _turn(1, "2")], levers=diary.levers())

        assert ("turns", ["1", "2"]) in diary.lines
        assert {at for name, at in diary.lines if name == "clock"} == {5}

    def test_steps_tell_how_far_it_is(self) -> None:
        """Progress counts published turns and names sweeps."""
        diary = Diary()
        published = publish_as_lived(diary, [_turn(0, "1"), _turn(8, "2")], levers=diary.levers())

        assert published == 2
        assert [(step.published, step.total, step.swept) for step in diary.steps] == [
            (1, 2, False), (1, 2, True), (2, 2, False), (2, 2, True),
        ]  # fmt: skip

    def test_nothing_to_publish_moves_nothing(self) -> None:
        """A second run, with every turn recorded, leaves clock and sweeps alone."""
        diary = Diary()

        assert publish_as_lived(diary, [], levers=diary.levers()) == 0
        assert diary.lines == []
