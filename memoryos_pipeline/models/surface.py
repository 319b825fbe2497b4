"""The words of a text as they are written, weighed: keywords people can read, in four languages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from memoryos_pipeline.domain.language import HAN, HANGUL, HIRAGANA, KATAKANA
from memoryos_pipeline.models import stopwords
from memoryos_pipeline.models.lexical import lexical_terms, normalize_text, strip_particle

MAX_CHARACTERS = 20_000
"""Of a longer text its two ends are read."""
MAX_KEYWORD_CHARACTERS = 40
_CJK = f"{HAN}{HIRAGANA}{KATAKANA}{HANGUL}"
_WORDS = re.compile(
    rf"(?P<han>[{HAN}]+)|(?P<kana>[{KATAKANA}]{{2,}})|(?P<hangul>[{HANGUL}]+)"
    rf"|(?P<word>[^\W\d_{_CJK}](?:[^\W_{_CJK}]|['’-](?=[^\W\d_]))+)"
)
_HAN_BREAKS = re.compile(f"[{''.join(sorted(stopwords.HAN_CHARACTERS))}]")
_HAN_LONGEST = 4


def surface_keywords(texts: Sequence[str], *, limit: int, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the weightiest words of the texts as written, at most `limit`; `without` names words to leave out."""
    left_out = {normalize_text(name) for name in without}
    counts, written = Counter[str](), dict[str, str]()
    for text in texts:
        for surface in _surfaces(_both_ends(text)):
            key = _key(surface)
            if key and normalize_text(surface) not in left_out:
                counts[key] += 1
                written.setdefault(key, surface[:MAX_KEYWORD_CHARACTERS])
    order = {key: index for index, key in enumerate(counts)}
    best = sorted(counts, key=lambda key: (-counts[key] * _weight(written[key]), order[key]))
    return tuple(dict.fromkeys(written[key] for key in best[:limit]))


def _both_ends(text: str) -> str:
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _key(surface: str) -> str | None:
    if surface[0] >= "\u2e80":
        return surface
    normalized = normalize_text(surface)
    return None if normalized in stopwords.ENGLISH else (lexical_terms(surface, "und") or [normalized])[0]


def _weight(surface: str) -> float:
    """Longer words and names say more."""
    width = len(surface) * (2.5 if surface[0] >= "\u2e80" else 1.0)
    return min(width, 10.0) + (3.0 if surface[0].isupper() else 0.0)


def _surfaces(text: str) -> Iterator[str]:
    for match in _WORDS.finditer(text):
        kind, run = match.lastgroup, match.group()
        if kind == "han":
            yield from _han_pieces(run)
        elif kind == "hangul":
            if run not in stopwords.KOREAN and len(stem := strip_particle(run)) > 1 and not _is_korean_verb(stem):
                yield stem
        elif kind == "kana" or len(run) > 2:
            yield run


def _han_pieces(run: str) -> Iterator[str]:
    for piece in _HAN_BREAKS.split(run):
        if 2 <= len(piece) <= _HAN_LONGEST:
            yield piece
        elif len(piece) > _HAN_LONGEST:
            yield from (piece[start : start + 2] for start in range(0, len(piece) - 1, 2))


def _is_korean_verb(word: str) -> bool:
    return word.endswith(("요", "다", "서", "고", "게", "면", "지만", "니까", "는데", "네", "어", "았", "었", "했"))
