"""A question about the wrong person is told by whose turns have its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.answerability import Heard, doubt_said, ends_asking

HEARD = st.builds(Heard, st.booleans(), st.floats(0, 50, allow_nan=False), st.booleans())


class TestDoubt:
    def test_it_is_the_margin_of_the_best(self) -> None:
        """Somebody else's best turn against the named person's, over the better of the two."""
        heard = [Heard(True, 2.0), Heard(True, 1.0), Heard(False, 8.0), Heard(False, 3.0)]

        assert doubt_said(heard) == pytest.approx(0.75)

    def test_its_ends(self) -> None:
        """1 when only others said it, -1 when only the named person did, 0 when nobody did."""
        assert doubt_said([Heard(False, 4.0)]) == 1.0
        assert doubt_said([Heard(True, 4.0)]) == -1.0
        assert doubt_said([Heard(True, 0.0), Heard(False, 0.0)]) == doubt_said([]) == 0.0

    def test_who_asks_has_not_said(self) -> None:
        """A friend's question has all the words and does not make the friend the one who did it."""
        assert doubt_said([Heard(False, 9.0, asks=True), Heard(True, 3.0)]) == -1.0

    @given(st.lists(HEARD, max_size=12))
    def test_it_is_bounded_and_turns_round(self, heard: list[Heard]) -> None:
        """Within [-1, 1], and asked about the other side it is the opposite."""
        turned = [Heard(not each.is_named, each.words, asks=each.asks) for each in heard]

        assert -1.0 <= doubt_said(heard) <= 1.0
        assert doubt_said(turned) == -doubt_said(heard)


class TestAsking:
    @pytest.mark.parametrize(
        "text",
        ["How was it?", "元気だった？", "“Really?”", "잘 지냈어?", "你好吗？」"],
        ids=["en", "ja", "quoted", "ko", "zh"],
    )
    def test_a_question_at_the_end_asks(self, text: str) -> None:
        """In every script, inside quotes or not."""
        assert ends_asking(text)

    @pytest.mark.parametrize("text", ["Really? I ran it.", "", "走ったよ。", "그렇구나"])
    def test_anything_else_tells(self, text: str) -> None:
        """A question that is followed by something said tells something."""
        assert not ends_asking(text)
