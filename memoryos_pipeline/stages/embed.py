"""Embed: put turns, page summaries and knowledge into the vector and the lexical index."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import StaleReadError
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Embedded
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.pages import (
    PageRow,
    find_page,
    load_turns,
    lock_conversation,
    lock_page,
    mark_indexed,
)
from memoryos_pipeline.store.postings import put_postings
from memoryos_pipeline.store.recallable import find_knowledge_text, find_recallable_turns
from memoryos_pipeline.store.vectors import ensure_space, put_vectors


@dataclass(frozen=True, slots=True)
class Text:
    """One text to index, and whose it is. The speaker's name is left out: names dominate short vectors."""

    owner_id: UUID
    content: str
    lang: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """A text with everything the two indexes keep of it."""

    text: Text
    embedded: Embedded
    terms: Sequence[str]


def embed(parts: Parts, lease: Lease) -> None:
    """Index what the subject names: `turns:<page id>`, `summary:<page id>` or `knowledge:<knowledge id>`.

    Raises ModelError, StaleReadError when the text changed meanwhile, FencedError when the lease was lost.
    """
    subject, _, owner = lease.subject_key.partition(":")
    SUBJECTS[subject](parts, lease, UUID(owner))


def _embed_turns(parts: Parts, lease: Lease, page_id: UUID) -> None:
    with parts.database.transaction(lease.tenant_id) as connection:
        page = find_page(connection, lease.tenant_id, page_id)
        turns = load_turns(connection, lease.tenant_id, page) if page else ()
    texts = [Text(turn.turn_id, turn.content, turn.lang) for turn in turns if turn.kind == "normal"]
    indexed = _index(parts, texts)
    with parts.database.transaction(lease.tenant_id) as connection:
        if page is not None and lock_conversation(connection, lease.tenant_id, page.conversation_id):
            kept = find_recallable_turns(connection, lease.tenant_id, page_id)
            _save(parts, lease, connection, "turn", [each for each in indexed if each.text.owner_id in kept])
            mark_indexed(connection, lease.tenant_id, page)
        complete(connection, lease)


def _embed_summary(parts: Parts, lease: Lease, page_id: UUID) -> None:
    with parts.database.transaction(lease.tenant_id) as connection:
        read = find_page(connection, lease.tenant_id, page_id)
    texts = [Text(page_id, read.summary, read.lang)] if read and read.summary else []
    indexed = _index(parts, texts)
    with parts.database.transaction(lease.tenant_id) as connection:
        page = lock_page(connection, lease.tenant_id, page_id)
        if page is not None and read is not None:
            _save_summary(parts, lease, connection, indexed, page, read)
        complete(connection, lease)


def _save_summary(
    parts: Parts, lease: Lease, connection: Connection, indexed: Sequence[Indexed], page: PageRow, read: PageRow
) -> None:
    if page.summary != read.summary:
        raise StaleReadError
    if page.tier == "warm":
        _save(parts, lease, connection, "page", indexed)
    segment = Owed(WorkKind.SEGMENT, str(lease.scope_id), lease.scope_id)
    owe(connection, lease.tenant_id, [segment], max_attempts=parts.max_attempts)


def _embed_knowledge(parts: Parts, lease: Lease, knowledge_id: UUID) -> None:
    with parts.database.transaction(lease.tenant_id) as connection:
        read = find_knowledge_text(connection, lease.tenant_id, knowledge_id)
    indexed = _index(parts, [Text(knowledge_id, read.content, read.lang)] if read else [])
    with parts.database.transaction(lease.tenant_id) as connection:
        now = find_knowledge_text(connection, lease.tenant_id, knowledge_id)
        if now is not None and now.recallable:
            _save(parts, lease, connection, "knowledge", indexed)
        complete(connection, lease)


SUBJECTS: dict[str, Callable[[Parts, Lease, UUID], None]] = {
    "turns": _embed_turns,
    "summary": _embed_summary,
    "knowledge": _embed_knowledge,
}


def _index(parts: Parts, texts: Sequence[Text]) -> list[Indexed]:
    """Embed and analyse texts; those without a word have no place in an index. Holds no connection."""
    worded = [text for text in texts if text.content.strip()]
    vectors = parts.embedder.embed_passages([text.content for text in worded]) if worded else []
    return [
        Indexed(text, vector, lexical_terms(text.content, text.lang))
        for text, vector in zip(worded, vectors, strict=True)
    ]


def _save(parts: Parts, lease: Lease, connection: Connection, owner_kind: str, indexed: Sequence[Indexed]) -> None:
    if not indexed:
        return
    space_id = ensure_space(connection, parts.embedder)
    vectors = [(each.text.owner_id, each.embedded, _digest(each.text.content)) for each in indexed]
    postings = [(each.text.owner_id, each.terms) for each in indexed]
    put_vectors(connection, lease.tenant_id, lease.scope_id, space_id, owner_kind, vectors)
    put_postings(connection, lease.tenant_id, lease.scope_id, owner_kind, postings)


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8")).digest()
