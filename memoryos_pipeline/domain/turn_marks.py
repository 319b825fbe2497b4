"""Small readings of a text that are made once, when it is indexed: does it ask, does it tell a time. Pure."""

import re
from dataclasses import dataclass

from memoryos_pipeline.domain.answerability import ends_asking
from memoryos_pipeline.domain.question_dates import has_time_expression

SENTENCE_END = re.compile(r"[.!?。！？…]+")
QUESTION_MARKS = "?？"
SHORT_PIECE = 12
"""Characters of a greeting or an exclamation that tells nothing."""

MARKS_VERSION = 1
"""Raised, with the default of its column, when texts are read by other rules."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What was read of a text."""

    asks_only: bool = False
    ends_asking: bool = False
    tells_time: bool = False


def read_marks(text: str) -> Marks:
    """Read a text once."""
    return Marks(is_question_only(text), ends_asking(text), has_time_expression(text))


def is_question_only(text: str) -> bool:
    """Tell whether a turn asks and tells nothing: whatever does not end in a question mark is a word or two."""
    if not any(sign in text for sign in QUESTION_MARKS):
        return False
    return all(
        len(piece) <= SHORT_PIECE or any(sign in mark for sign in QUESTION_MARKS) for piece, mark in _sentences(text)
    )


def _sentences(text: str) -> list[tuple[str, str]]:
    pieces, start = [], 0
    for match in SENTENCE_END.finditer(text):
        pieces.append((text[start : match.start()].strip(), match.group()))
        start = match.end()
    pieces.append((text[start:].strip(), ""))
    return [(piece, mark) for piece, mark in pieces if piece]
