"""Search terms find text in Japanese, Korean, Chinese and English alike."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.models.lexical import (
    MAX_DISTINCT_TERMS,
    MAX_QUERY_TERMS,
    MAX_TERM_CHARACTERS,
    lexical_terms,
    query_terms,
)

TEXTS = (
    "昨日は近所の銭湯に行った",
    "주말에 한강에서 자전거를 탔다",
    "上周在图书馆借了三本书",
    "Kubernetes クラスタを東京リージョンへ移した",
    "Maya's café opens on May 8th, she was running late",
    "我养了一只猫",
    "りんごとおにぎりが好き",
)


def _best(query: str) -> str:
    terms = set(query_terms(query, "und"))
    scores = {text: len(terms & set(lexical_terms(text, "und"))) for text in TEXTS}
    best = max(scores, key=lambda text: scores[text])
    assert scores[best] > 0, query
    assert [score for text, score in scores.items() if score == scores[best]] == [scores[best]], query
    return best


class TestFindText:
    @pytest.mark.parametrize(
        ("query", "index"),
        [
            ("銭湯", 0), ("銭湯はどこ？", 0), ("자전거", 1), ("자전거는", 1), ("한강 자전거", 1), ("图书馆", 2),
            ("借书", 2),
            ("クラスタ", 3), ("kubernetes クラスタ", 3), ("Ｋｕｂｅｒｎｅｔｅｓ", 3), ("ｸﾗｽﾀ", 3), ("東京", 3),
            ("CAFE", 4), ("who runs?", 4), ("Maya", 4), ("maya’s", 4), ("猫", 5), ("你养猫吗", 5),
            ("リンゴ", 6), ("おにぎり", 6),
        ],
    )  # fmt: skip
    def test_another_form_of_the_word_finds_it(self, query: str, index: int) -> None:
        """Width, case, accents, inflection, particles and kana do not stand between a query and its text."""
        assert _best(query) == TEXTS[index]

    @pytest.mark.parametrize("lang", ["en", "ja", "ko", "zh", "und"])
    def test_the_guess_of_the_language_does_not_matter(self, lang: str) -> None:
        """A short query is often taken for another language than its text."""
        assert [lexical_terms(text, lang) for text in TEXTS] == [lexical_terms(text, "und") for text in TEXTS]

    def test_words_that_say_nothing_are_left_out(self) -> None:
        """Stop words of English and particles of Japanese and Korean cost no room."""
        assert lexical_terms("It was just the cat that we had seen", "en") == ["cat", "seen"]
        assert "です" not in lexical_terms("猫が好きです", "ja")
        assert lexical_terms("나는 고양이를", "ko") == ["고양이", "고양", "양이"]

    @pytest.mark.parametrize("text", ["to be or not to be", "です", "나는", "的"])
    def test_a_text_of_stop_words_keeps_them(self, text: str) -> None:
        """Nothing that has letters is unfindable."""
        assert lexical_terms(text, "und")

    @pytest.mark.parametrize("text", ["привет мир", "สวัสดีครับ", "नमस्ते दुनिया", "γειά σου", "שלום"])
    def test_other_scripts_have_terms_too(self, text: str) -> None:
        """Normalising keeps the letters and marks of all scripts."""
        assert lexical_terms(text, "und")

    def test_dates_are_words(self) -> None:
        """5月8日, 5月8号 and 5월 8일 are found by month and by day."""
        assert {"5月", "8日"} <= set(lexical_terms("5月8日に会う", "ja"))
        assert {"5月", "8日"} <= set(lexical_terms("我5月8号去", "zh"))
        assert {"5월", "8일"} <= set(lexical_terms("5월 8일에 만나", "ko"))


class TestBound:
    def test_start_and_end_of_a_long_text_both_stay(self) -> None:
        """More than 2,000 distinct terms are cut in the middle."""
        words = [f"w{number}x" for number in range(9_000)]
        terms = lexical_terms(" ".join(words), "en")
        assert len(set(terms)) == MAX_DISTINCT_TERMS
        assert {"w0x", "w8999x"} <= set(terms)
        assert "w4500x" not in terms

    @given(st.text())
    def test_terms_are_bounded_and_repeatable(self, text: str) -> None:
        """No text makes an empty, an endless or a changing term."""
        terms = lexical_terms(text, "und")
        assert all(0 < len(term) <= MAX_TERM_CHARACTERS for term in terms)
        assert terms == lexical_terms(text, "und")

    @pytest.mark.parametrize("unit", ["a", "字", "가", "あ", "ア", "ก", "ﷺ", "🎉", "'", "a'"])
    def test_a_huge_word_stays_bounded(self, unit: str) -> None:
        """64 KiB without a space makes few and short terms."""
        terms = set(lexical_terms(unit * (65_536 // len(unit.encode())), "und"))
        assert len(terms) <= MAX_DISTINCT_TERMS
        assert all(len(term) <= MAX_TERM_CHARACTERS for term in terms)

    def test_a_query_is_bounded(self) -> None:
        """A question of ten thousand words is asked with 256."""
        words = " ".join(f"w{number}x" for number in range(10_000))
        assert len(query_terms(words, "en")) == MAX_QUERY_TERMS

    def test_threads_do_not_mix_their_words(self) -> None:
        """Stemming in eight threads gives what one thread gives."""
        texts = [" ".join(f"running{a}{b} nationalities{b}" for b in "abcdefghij" * 20) for a in "abcdefgh"]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(8) as pool:
                threaded = list(pool.map(lambda text: lexical_terms(text, "en"), texts))
        finally:
            sys.setswitchinterval(interval)
        assert threaded == [lexical_terms(text, "en") for text in texts]
