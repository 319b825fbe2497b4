"""Languages are told apart by script, and splitting into sentences loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.language import detect_language, split_sentences

SAMPLES = {
    "en": "I moved to Lisbon last week. It rains a lot.",
    "ja": "昨日は近所の銭湯に行った。とても気持ちよかった！",
    "ko": "주말에 한강에서 자전거를 탔다. 정말 재미있었어!",
    "zh": "上周在图书馆借了三本书。都很有意思！",
}


def _visible(text: str) -> str:
    return "".join(text.split())


class TestDetectLanguage:
    @pytest.mark.parametrize(("lang", "text"), SAMPLES.items())
    def test_each_language_is_recognised(self, lang: str, text: str) -> None:
        """The script decides."""
        assert detect_language(text) == lang

    @pytest.mark.parametrize(
        ("text", "lang"),
        [
            ("I ate ラーメン yesterday with my sister", "en"),
            ("Kubernetes クラスタを東京リージョンへ移した", "ja"),
            ("我在 Google 上班", "zh"),
            ("나는 Python을 공부해", "ko"),
            ("鲜の每日坚果真好吃，我每天早上都吃一包再出门上班去", "zh"),
            ("Привет мир", "und"),
            ("", "und"),
            ("12:30 🎉", "und"),
            ("ﾃｽﾄです", "ja"),
        ],
    )
    def test_mixed_text_goes_to_its_main_language(self, text: str, lang: str) -> None:
        """A foreign word does not turn a sentence over, and what has no letters has no language."""
        assert detect_language(text) == lang


class TestSplitSentences:
    @pytest.mark.parametrize("text", SAMPLES.values())
    def test_two_sentences_are_two(self, text: str) -> None:
        """Full stops of every language end a sentence."""
        assert len(split_sentences(text)) == 2

    @pytest.mark.parametrize(
        "text",
        ["Dr. Smith paid 3.50 for it.", "「行く。」と言った。", "See a?b=c for it.", "J. R. Tolkien wrote it."],
    )
    def test_marks_inside_a_sentence_do_not_end_it(self, text: str) -> None:
        """Abbreviations, numbers, quotes and addresses stay whole."""
        assert split_sentences(text) == [text]

    def test_an_answer_is_a_sentence_of_its_own(self) -> None:
        """ "No." is not the abbreviation of number here."""
        assert split_sentences("No. I said Porto.") == ["No.", "I said Porto."]

    @given(st.text())
    def test_no_visible_character_is_lost(self, text: str) -> None:
        """Whatever the text, its sentences hold all of it in order."""
        assert _visible("".join(split_sentences(text))) == _visible(text)

    @pytest.mark.parametrize("unit", [*SAMPLES.values(), "a", "。", ". ", ".", "「", "\n", "Dr. "])
    def test_a_huge_text_is_split_whole(self, unit: str) -> None:
        """64 KiB of anything is split without loss."""
        text = (unit * 65_536)[: 65_536 // len(unit[0].encode())]
        assert _visible("".join(split_sentences(text))) == _visible(text)
