"""MADial-Bench: memories become days of a diary, and what was said before the answer becomes the question."""

from typing import Any

from memoryos_pipeline.evaluation.madial import join, madial_data

MEMORIES = {
    "7": {"time": "2023-07-02", "event": "Tom built a kite."},
    "3": {"time": "2023-05-01", "event": "Tom lost a shoe."},
}


def dialogue(*lines: str, test_turns: tuple[int, ...] = (2,), relevant: tuple[int, ...] = (7,)) -> dict[str, Any]:
    """A dialogue as the file has it."""
    return {"dialogue": ["<BOD>\n", *lines], "test-turn": list(test_turns), "relevant-id": list(relevant)}


class TestMadial:
    def test_a_query_is_what_was_said_before(self) -> None:
        """Everything up to the first turn to be predicted, which is not given away, without the marks of the file."""
        asked = madial_data("en", MEMORIES, [dialogue("<Tom>: windy!\n", "<Bot>: your kite!\n", "<EOD>\n")]).questions

        assert [question.text for question in asked] == ["<Tom>: windy!"]
        assert (asked[0].gold, asked[0].category) == (frozenset({"7"}), "en")

    def test_memories_are_told_in_their_order(self) -> None:
        """By day, not by number; questions are asked the day after the last."""
        data = madial_data("zh", MEMORIES, [dialogue("<Tom>: windy!\n")])

        assert [turn["client_turn_id"] for turn in data.turns] == ["3", "7"]
        assert data.questions[0].asked_at == "2023-07-03T12:00:00+00:00"

    def test_what_names_no_memory_is_counted(self) -> None:
        """A dialogue whose memories are not there is not asked."""
        data = join(madial_data(lang, MEMORIES, [dialogue("<Tom>: hm\n", relevant=(99,))]) for lang in ("en", "zh"))

        assert (len(data.questions), data.dropped) == (0, {"questions_without_evidence": 2})
        assert set(data.session_of) == {"madial-en", "madial-zh"}
