"""Questions are paired with the turns that answer them, and what cannot be paired is counted."""

from typing import Any

from memoryos_pipeline.evaluation.questions import locomo_data, sample_data
from memoryos_pipeline.sample import sample_questions, sample_turns


def turn(name: str, at: str = "2023-05-08T13:56:00+00:00") -> dict[str, Any]:
    """A turn of the only user."""
    return {
        "user_id": "made-1", "agent_id": "locomo", "conversation_id": "made-1",
        "client_turn_id": name, "occurred_at": at,
    }  # fmt: skip


TURNS = [turn("D1:1"), turn("D1:2"), turn("D2:5", at="2023-06-01T10:00:00+00:00")]


def qa(category: int, *evidence: str) -> dict[str, Any]:
    """A question with its evidence as it is written."""
    return {"question": "Where is the kiln?", "category": category, "evidence": list(evidence)}


def data(*questions: dict[str, Any]) -> Any:
    """One sample with these questions."""
    return locomo_data([{"sample_id": "made-1", "qa": list(questions)}], TURNS)


class TestLocomo:
    def test_evidence_is_read_however_it_is_written(self) -> None:
        """Several in one string, a stray colon and a leading zero all name their turns."""
        asked = data(qa(1, "D1:1; D2:5"), qa(1, "D:1:2"), qa(4, "D2:05")).questions

        assert [set(question.gold) for question in asked] == [{"D1:1", "D2:5"}, {"D1:2"}, {"D2:5"}]

    def test_what_names_no_turn_is_dropped_and_counted(self) -> None:
        """A question keeps the evidence that exists; one without any is not asked."""
        made = data(qa(1, "D1:1", "D9:9"), qa(3), qa(4, "D9:9"))

        assert [set(question.gold) for question in made.questions] == [{"D1:1"}]
        assert made.dropped == {"questions_without_evidence": 2, "evidence_without_turn": 2}

    def test_category_five_is_in_no_headline(self) -> None:
        """Adversarial questions are kept apart: their evidence only tempts."""
        asked = data(qa(5, "D1:1"), qa(1, "D1:1")).questions

        assert [question.is_headline for question in asked] == [False, True]

    def test_it_is_asked_when_the_last_turn_was_said(self) -> None:
        """The moment of a question is the end of its conversation, and a session is what its turn id begins with."""
        made = data(qa(1, "D1:1"))

        assert made.questions[0].asked_at == "2023-06-01T10:00:00+00:00"
        assert made.session_of["made-1"] == {"D1:1": "D1", "D1:2": "D1", "D2:5": "D2"}


class TestSample:
    def test_every_question_has_its_turns(self) -> None:
        """The packaged questions name turns that are there, by language and category, all in the headline."""
        made = sample_data(sample_questions(), sample_turns())

        assert len(made.questions) == len(sample_questions())
        assert {question.category.split()[0] for question in made.questions} == {"en", "ja", "ko", "zh"}
        assert all(question.gold <= made.session_of[question.user_id].keys() for question in made.questions)
        assert all(question.is_headline for question in made.questions)
