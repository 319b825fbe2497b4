"""A rollup says what was told most, in order, and fits."""

from memoryos_pipeline.domain.rollups import Told, roll_up

TENNIS = Told("Mika played tennis with Anna.", ("tennis", "anna"), "en")
RAIN = Told("It rained.", ("rain",), "en")
AGAIN = Told("Tennis again, Anna won.", ("tennis", "anna"), "en")
RAMEN = Told("ラーメンを食べた。", ("ラーメン",), "ja")


class TestRollUp:
    def test_what_is_told_most_is_kept_in_order(self) -> None:
        """Two of three fit: the two about tennis, the earlier one first."""
        told = roll_up([TENNIS, RAIN, AGAIN], max_characters=60)

        assert told.text == f"{TENNIS.text}\n{AGAIN.text}"
        assert told.keywords[:2] == ("tennis", "anna")

    def test_something_is_always_said(self) -> None:
        """A summary longer than the room is kept when it is the only one that tells anything."""
        assert roll_up([TENNIS], max_characters=5).text == TENNIS.text
        assert roll_up([], max_characters=5).text == ""

    def test_words_stay_in_their_language(self) -> None:
        """Nothing is translated; the language is the commonest known one."""
        told = roll_up([RAMEN, TENNIS, RAMEN], max_characters=100)

        assert (told.lang, RAMEN.text in told.text) == ("ja", True)
