"""Turns text into search terms: stemmed words, and for Chinese, Japanese and Korean characters and pairs.

A text is cut into runs of one script and each run is analysed by its script, so that a query finds a text
whatever language either of them was taken for.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import snowballstemmer

from memoryos_pipeline.domain.language import HAN, HANGUL, HIRAGANA, KATAKANA
from memoryos_pipeline.models import stopwords

MAX_DISTINCT_TERMS = 2_000
MAX_QUERY_TERMS = 256
MAX_TERM_CHARACTERS = 64

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer: no spaces between words
_RUN = re.compile(
    rf"(?P<date>\d+[年月日号時时点년월일시])"
    rf"|(?P<han>[{HAN}]+)|(?P<hiragana>[{HIRAGANA}ー]+)|(?P<katakana>[{KATAKANA}]+)|(?P<hangul>[{HANGUL}]+)"
    rf"|(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<word>(?:[^\W_{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{_UNSPACED}]|[\u0900-\u0dff])+"
    rf"(?:'[^\W_{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{_UNSPACED}]+)*)"
)
_MARKS = re.compile("[\u0300-\u036f]")
_TO_HIRAGANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}
_LONGEST_WHOLE_WORD = 20

_local = threading.local()


def lexical_terms(text: str, lang: str) -> list[str]:  # noqa: ARG001 - a query rarely knows the language of its target
    """Return the terms of a stored text in order, repeats kept; at most 2,000 distinct, 64 characters each.

    When there are more, those met first from the start and from the end stay, half of the room each.
    """
    terms = _analyse(text)
    kept = _within_bound(terms)
    return terms if kept is None else [term for term in terms if term in kept]


def query_terms(text: str, lang: str) -> list[str]:  # noqa: ARG001 - see lexical_terms
    """Return the distinct terms of a question in order, at most 256."""
    return list(dict.fromkeys(_analyse(text)))[:MAX_QUERY_TERMS]


def normalize_text(text: str) -> str:
    """Return the text as compared everywhere: forms and case folded, one kind of apostrophe."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("’", "'").replace("‘", "'")


def _analyse(text: str) -> list[str]:
    normalized = normalize_text(text)
    terms = [term[:MAX_TERM_CHARACTERS] for term in _terms_of_runs(normalized, keep_stop_words=False)]
    if terms:
        return terms
    # "To be or not to be" is all stop words and still has to be findable.
    return [term[:MAX_TERM_CHARACTERS] for term in _terms_of_runs(normalized, keep_stop_words=True)]


def _terms_of_runs(normalized: str, *, keep_stop_words: bool) -> Iterator[str]:
    for match in _RUN.finditer(normalized):
        kind, run = str(match.lastgroup), match.group()
        yield from _ANALYSERS[kind](run, keep_stop_words)


def _date_terms(run: str, _keep: bool) -> Iterable[str]:
    return (run.translate({ord("号"): "日", ord("时"): "時"}), run[:-1])


def _han_terms(run: str, keep: bool) -> Iterable[str]:
    singles = [c for c in run if keep or c not in stopwords.HAN_CHARACTERS]
    return (*singles, *_pairs(run))


def _hiragana_terms(run: str, keep: bool) -> Iterable[str]:
    if keep:
        return _pairs(run) if len(run) > 1 else (run,)
    return (pair for pair in _pairs(run) if pair not in stopwords.JAPANESE_PAIRS)


def _katakana_terms(run: str, _keep: bool) -> Iterable[str]:
    kana = run.translate(_TO_HIRAGANA)
    if len(kana) == 1:
        return (kana,)
    whole = (kana,) if 2 < len(kana) <= _LONGEST_WHOLE_WORD else ()
    return (*whole, *_pairs(kana))


@lru_cache(maxsize=50_000)
def _hangul_terms(run: str, keep: bool) -> tuple[str, ...]:
    if run in stopwords.KOREAN:
        return (run,) if keep else ()
    stripped = strip_particle(run)
    pairs = _pairs(stripped)
    whole = (stripped,) if len(stripped) != 2 and len(stripped) <= _LONGEST_WHOLE_WORD else ()
    return (*whole, *pairs)


def strip_particle(word: str) -> str:
    """Return a Korean word without the particle it ends with; what is left is never empty."""
    for particle in stopwords.KOREAN_PARTICLES:
        if word.endswith(particle):
            left = len(word) - len(particle)
            if left >= 2 or (left == 1 and particle in stopwords.KOREAN_PARTICLES_AFTER_ONE_SYLLABLE):
                return word[:left]
    return word


def _unspaced_terms(run: str, _keep: bool) -> Iterable[str]:
    return _pairs(run) if len(run) > 1 else (run,)


def _word_terms(run: str, keep: bool) -> Iterable[str]:
    if run in stopwords.ENGLISH and not keep:
        return ()
    return (_stem(run),)


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(first + second for first, second in pairwise(run))


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if not word.isascii():
        if word[0] < "\u0250":
            word = _MARKS.sub("", unicodedata.normalize("NFKD", word))  # café is cafe
        if not word.isascii():
            return word
    return str(_stemmer().stemWord(word[:MAX_TERM_CHARACTERS])) or word


def _stemmer() -> "snowballstemmer.english_stemmer.EnglishStemmer":
    # A snowball stemmer keeps the word it works on, so threads cannot share one.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = snowballstemmer.stemmer("english")
    return _local.stemmer


def _within_bound(terms: list[str]) -> set[str] | None:
    distinct = dict.fromkeys(terms)
    if len(distinct) <= MAX_DISTINCT_TERMS:
        return None
    half = MAX_DISTINCT_TERMS // 2
    kept = set(list(distinct)[:half])
    for term in reversed(terms):
        if len(kept) >= MAX_DISTINCT_TERMS:
            break
        kept.add(term)
    return kept


_ANALYSERS: dict[str, Callable[[str, bool], Iterable[str]]] = {
    "date": _date_terms,
    "han": _han_terms,
    "hiragana": _hiragana_terms,
    "katakana": _katakana_terms,
    "hangul": _hangul_terms,
    "unspaced": _unspaced_terms,
    "word": _word_terms,
}
