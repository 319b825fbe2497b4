"""What is read of a text when it is indexed."""

import pytest

from memoryos_pipeline.domain.turn_marks import is_question_only


class TestIsQuestionOnly:
    @pytest.mark.parametrize("text", ["What's up?", "Wow! How was the trip?", "元気？", "뭐 해?", "Really? Where?"])
    def test_it_asks_and_tells_nothing(self, text: str) -> None:
        """Questions, greetings before questions, in any language."""
        assert is_question_only(text)

    @pytest.mark.parametrize(
        "text", ["I moved to Kyoto last week. You?", "昨日は近所の銭湯に行って疲れが取れた。君は？", "Fine."]
    )
    def test_it_tells_something(self, text: str) -> None:
        """A statement beside a question, or no question at all."""
        assert not is_question_only(text)
