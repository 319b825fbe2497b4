"""Notes on statements: context, keywords and tags, and how a new statement annotates its neighbours. Pure.

A note is a version; the statement it is about is never touched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

MAX_TAGS = 12
MAX_CONTEXT_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Note:
    """One version of what is noted about a statement; `cause_id` is the statement that brought it about."""

    knowledge_id: UUID
    version: int
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    cause_id: UUID | None = None


def first_note(knowledge_id: UUID, *, context: str, keywords: Iterable[str], tags: Iterable[str]) -> Note:
    """Return the note a statement is stored with."""
    return Note(knowledge_id, 1, context[:MAX_CONTEXT_CHARACTERS], _few(keywords), _few(tags))


def evolve(note: Note, *, by: Note, reason: str) -> Note | None:
    """Return the next version of a neighbour's note, or None when the new statement adds nothing to it."""
    tags = _few((*note.tags, *by.tags, *by.keywords))
    if tags == note.tags:
        return None
    context = "; ".join(part for part in (note.context, reason) if part)[-MAX_CONTEXT_CHARACTERS:]
    return Note(note.knowledge_id, note.version + 1, context, note.keywords, tags, by.knowledge_id)


def composite(content: str, note: Note | None) -> str:
    """Return the text of a statement with its note, as a design that embeds notes embeds it."""
    if note is None:
        return content
    parts: Sequence[str] = (content, note.context, " ".join(note.keywords), " ".join(note.tags))
    return "\n".join(part for part in parts if part)


def _few(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word))[:MAX_TAGS]
