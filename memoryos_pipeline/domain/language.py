"""Which language a text is in and where its sentences end, for Japanese, Korean, Chinese and English."""

import re
from typing import Literal

Language = Literal["en", "ja", "ko", "zh", "und"]

HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA = "\u3041-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"

_LATIN_LETTERS_PER_CJK = 3
"""One ideograph or syllable says about as much as three Latin letters."""
_KANA_SHARE_OF_JAPANESE = 0.05
"""Chinese texts carry a stray の; Japanese ones are never this poor in kana."""

_HAN_RUNS = re.compile(f"[{HAN}]+")
_KANA_RUNS = re.compile(f"[{HIRAGANA}{KATAKANA}]+")
_HANGUL_RUNS = re.compile(f"[{HANGUL}]+")
_LATIN_RUNS = re.compile(f"[{LATIN}]+")
_OTHER_LETTERS = re.compile(rf"[^\W\d_{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{LATIN}]+")

_CLOSERS = "」』）)】》〉”’\"'］\\]"
_BREAK = re.compile(rf"\n+|(?:[。｡！？!?…]+|\.+(?=[\s{_CLOSERS}]|$)|．+(?!\d))(?P<closers>[{_CLOSERS}]*)(?P<rest>\s*)")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|a\.m|p\.m|U\.S|approx)$"
)
_FINAL_ABBREVIATION = ("etc", "a.m", "p.m", "U.S", "I")


def detect_language(text: str) -> Language:
    """Return the main language by script: kana is ja, hangul is ko, han without kana is zh, Latin is en."""
    if text.isascii():  # same answer, and most English texts take this short way
        return "en" if _LATIN_RUNS.search(text) else "und"
    han, kana, hangul = _count(_HAN_RUNS, text), _count(_KANA_RUNS, text), _count(_HANGUL_RUNS, text)
    weight = (han + kana + hangul) * _LATIN_LETTERS_PER_CJK
    if weight >= len(text):  # whatever the rest is, it is not more
        return _cjk_language(han, kana, hangul)
    latin, other = _count(_LATIN_RUNS, text), _count(_OTHER_LETTERS, text)
    if weight and weight >= max(latin, other):
        return _cjk_language(han, kana, hangul)
    return "en" if latin > other else "und"


def _count(runs: re.Pattern[str], text: str) -> int:
    return sum(map(len, runs.findall(text)))


def _cjk_language(han: int, kana: int, hangul: int) -> Language:
    if hangul >= max(kana, 1) and hangul * 2 >= han:
        return "ko"
    return "ja" if kana > (han + kana) * _KANA_SHARE_OF_JAPANESE else "zh"


def split_sentences(text: str) -> list[str]:
    """Return the sentences in order, trimmed; joined they hold every visible character of the text."""
    sentences, start = [], 0
    for match in _BREAK.finditer(text):
        if _is_boundary(text, start, match):
            sentences.append(text[start : match.end()].strip())
            start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_boundary(text: str, start: int, match: re.Match[str]) -> bool:
    mark = match.group(0)
    if mark[0] == "\n" or match.end() == len(text):
        return True
    if match.group("closers") and not match.group("rest"):
        return False  # 「行く。」と言った is one sentence
    if mark[0] in "!?" and not match.group("rest"):
        return ord(text[match.end()]) > 0x2E80  # 行く?明日 breaks, a?b=c does not
    return mark[0] != "." or not _is_abbreviation(text, start, match)


def _is_abbreviation(text: str, start: int, match: re.Match[str]) -> bool:
    before = text[max(start, match.start() - 12) : match.start()]
    found = _ABBREVIATION.search(before)
    if found is None:
        return False
    ends_a_sentence = text[match.end() : match.end() + 1].isupper() and before.endswith(_FINAL_ABBREVIATION)
    return not ends_a_sentence
