"""Summarize a page: what it says, its keywords, and whether it goes on with the page before it."""

from dataclasses import replace
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.pages import TOO_LONG, PageSummary, PageText, is_summary
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.journal import WorkJournal
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.pages import PageReading, lock_conversation, read_page, save_summary

NOTHING_SAID = "…"
"""The summary of a page of nothing but signs, tools or memories: it still has to move on."""


def summarize_page(parts: Parts, lease: Lease) -> None:
    """Read one page, summarize it, keep the summary and owe its vector.

    Raises ModelError, InvalidOutputError on an empty or longer summary, FencedError when the lease was lost.
    """
    with parts.database.transaction(lease.tenant_id) as connection:
        reading = read_page(connection, lease.tenant_id, UUID(lease.subject_key))
    summary = _think(parts, lease, reading) if reading else None
    with parts.database.transaction(lease.tenant_id) as connection:
        if reading is not None and summary is not None:
            _save(parts, lease, connection, reading, summary)
        complete(connection, lease)


def _think(parts: Parts, lease: Lease, reading: PageReading) -> PageSummary:
    journal = WorkJournal(parts.database, lease)
    summary = parts.language_model.summarize(reading.text, journal=journal)
    if not summary.summary.strip() and not has_words(reading.text):
        return replace(summary, summary=NOTHING_SAID)
    if not summary.summary.strip():
        message = "the summary is empty"
        raise InvalidOutputError(message)
    if not is_summary(summary.summary, reading.text):
        raise InvalidOutputError(TOO_LONG)
    return summary


def has_words(page: PageText) -> bool:
    """Tell whether user or assistant said anything on a page that a summary could hold."""
    said = [turn for turn in page.turns if turn.kind == "normal" and turn.role in ("user", "assistant")]
    return any(character.isalnum() for turn in said for character in turn.content)


def _save(parts: Parts, lease: Lease, connection: Connection, reading: PageReading, summary: PageSummary) -> None:
    page = reading.page
    # Two neighbouring pages may be summarized at once; the lock lets the later one see the chain.
    if lock_conversation(connection, lease.tenant_id, page.conversation_id) is None:
        return
    if not save_summary(connection, lease.tenant_id, reading=reading, summary=summary):
        return
    vector = Owed(WorkKind.EMBED, f"summary:{page.page_id}", lease.scope_id)
    owe(connection, lease.tenant_id, [vector], max_attempts=parts.max_attempts)
    if summary.summary == page.summary:
        return  # done again, and told already
    told = Event(
        "page_summarized",
        lease.scope_id,
        subject_id=page.page_id,
        conversation_id=page.conversation_id,
        seq=page.last_seq,
        work_id=lease.work_id,
    )
    record_events(connection, lease.tenant_id, [told])
