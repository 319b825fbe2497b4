"""A page: a few consecutive turns of one conversation, and what is said about them."""

from dataclasses import dataclass
from uuid import UUID

from memoryos_pipeline.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class PageText:
    """What a language model is shown of a page: its turns in order, and the turns of the page before it.

    `relations_wanted` asks whoever distills it for triples too, where that costs anything.
    """

    page_id: UUID
    turns: tuple[Turn, ...]
    previous_turns: tuple[Turn, ...] = ()
    relations_wanted: bool = False


@dataclass(frozen=True, slots=True)
class PageSummary:
    """What summarizing says about a page, in the language of its turns."""

    summary: str
    keywords: tuple[str, ...]
    topics: tuple[str, ...]
    """At most two."""
    continues: bool
    """Whether the page goes on with what the previous page was about."""
    model: str
    """Model and prompt version that wrote it."""


ROOM_CHARACTERS = 400
NAMINGS = 3
"""Characters beyond the turns a summary may have, and how often it may name each speaker of a turn."""
TOO_LONG = "the summary is longer than the page"


def is_summary(text: str, page: PageText) -> bool:
    """Tell whether a text can sum a page up: it is not longer than what was said, with room for names and dates."""
    said = sum(len(turn.content) + NAMINGS * len(turn.speaker) for turn in page.turns)
    return len(text) <= said + ROOM_CHARACTERS
