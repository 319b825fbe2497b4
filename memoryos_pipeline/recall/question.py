"""What a question asks for, read once: its terms, its date windows, whom it names, what is embedded of it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.question_dates import DateWindow, asks_when, find_dates, without_dates
from memoryos_pipeline.models.lexical import query_terms
from memoryos_pipeline.recall.participants import find_participants

MAX_DENSE_CHARACTERS = 2_000
"""What is embedded of a question; more than this never fits a sentence model and only costs time."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as recall sees it. `dense_text` leaves out names and dates, which dominate short sentence vectors."""

    text: str
    lang: str
    terms: tuple[str, ...]
    dense_text: str
    actor: str | None
    windows: tuple[DateWindow, ...]
    asks_when: bool


def read_question(text: str, *, speakers: Iterable[tuple[str, str]], now: datetime) -> Question:
    """Read a question beside the speakers (name, role) of the scope; dates are resolved against `now`."""
    lang = detect_language(text)
    participants = find_participants(text, speakers)
    return Question(
        text=text,
        lang=lang,
        terms=tuple(query_terms(participants.without_names, lang)),
        dense_text=without_dates(participants.without_names)[:MAX_DENSE_CHARACTERS],
        actor=participants.actor,
        windows=tuple(find_dates(text, now)),
        asks_when=asks_when(text),
    )
