"""A page: a few consecutive turns of one conversation, and what is said about them."""

from dataclasses import dataclass
from uuid import UUID

from memoryos_pipeline.domain.turns import Turn


@dataclass(frozen=True, slots=True)
class PageText:
    """What a language model is shown of a page: its turns in order, and the turns of the page before it."""

    page_id: UUID
    turns: tuple[Turn, ...]
    previous_turns: tuple[Turn, ...] = ()


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
