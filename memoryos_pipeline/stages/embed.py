"""Embed: put turns, page summaries and knowledge into the vector and the lexical index."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import StaleReadError
from memoryos_pipeline.domain.notes import composite
from memoryos_pipeline.domain.turn_marks import read_marks
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Embedded
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.ledger import complete, complete_all, owe
from memoryos_pipeline.store.notes import latest_notes
from memoryos_pipeline.store.pages import (
    PageRow,
    find_page,
    load_turns,
    lock_conversation,
    lock_page,
    lock_pages,
    mark_indexed,
)
from memoryos_pipeline.store.postings import put_postings
from memoryos_pipeline.store.recallable import find_knowledge_text, find_recallable_turns
from memoryos_pipeline.store.tail import find_hot, load_tail, mark_ahead, read_digests
from memoryos_pipeline.store.vectors import ensure_space, put_vectors


@dataclass(frozen=True, slots=True)
class Text:
    """One text to index, and whose it is. The speaker's name is left out: names dominate short vectors.

    `digest` is of what was said, also where a note is indexed with it: by it one tells whether the index is of today.
    """

    owner_id: UUID
    content: str
    lang: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Indexed:
    """A text with everything the two indexes keep of it."""

    text: Text
    embedded: Embedded
    terms: Sequence[str]


def embed(parts: Parts, lease: Lease) -> None:
    """Index what the subject names: `turns:<page id>`, `summary:<page id>`, `knowledge:<id>`, `tail:<conversation id>`.

    Raises ModelError, StaleReadError when the text changed meanwhile, FencedError when the lease was lost.
    """
    subject, _, owner = lease.subject_key.partition(":")
    SUBJECTS[subject](parts, lease, UUID(owner))


def _embed_turns(parts: Parts, lease: Lease, page_id: UUID) -> None:
    with parts.database.transaction(lease.tenant_id) as connection:
        page = find_page(connection, lease.tenant_id, page_id)
        turns = load_turns(connection, lease.tenant_id, page) if page else ()
        texts = [_text(turn.turn_id, turn.content, turn.lang) for turn in turns if turn.kind == "normal"]
        texts = _without_indexed(parts, connection, lease, texts)
    indexed = _index(parts, texts)
    with parts.database.transaction(lease.tenant_id) as connection:
        if page is not None and lock_conversation(connection, lease.tenant_id, page.conversation_id):
            kept = find_recallable_turns(connection, lease.tenant_id, page_id)
            _save(parts, lease, connection, "turn", [each for each in indexed if each.text.owner_id in kept])
            mark_indexed(connection, lease.tenant_id, page)
        complete(connection, lease)


def _embed_tail(parts: Parts, lease: Lease, conversation_id: UUID) -> None:
    """Index hot turns ahead of their page. Those sealed meanwhile are left to it."""
    with parts.database.transaction(lease.tenant_id) as connection:
        tail = load_tail(connection, lease.tenant_id, conversation_id)
        texts = [_text(turn.turn_id, turn.content, turn.lang) for turn in tail.turns] if tail else []
        texts = _without_indexed(parts, connection, lease, texts)
    indexed = _index(parts, texts)
    with parts.database.transaction(lease.tenant_id) as connection:
        if tail is not None and lock_conversation(connection, lease.tenant_id, conversation_id):
            kept = find_hot(connection, lease.tenant_id, conversation_id, through=tail.through)
            _save(parts, lease, connection, "turn", [each for each in indexed if each.text.owner_id in kept])
            if all(each.text.owner_id in kept for each in indexed):
                mark_ahead(connection, lease.tenant_id, conversation_id, through=tail.through)
        complete(connection, lease)


def _without_indexed(parts: Parts, connection: Connection, lease: Lease, texts: Sequence[Text]) -> list[Text]:
    """Leave out what has a vector of this very text already: a page finds most of its turns indexed ahead."""
    known = read_digests(connection, lease.tenant_id, parts.embedder, [text.owner_id for text in texts])
    return [text for text in texts if known.get(text.owner_id) != text.digest]


def embed_together(parts: Parts, leases: Sequence[Lease]) -> None:
    """Index summaries and statements that several rows of one tenant name: one call, one transaction, all or none.

    Raises as `embed` does, and then nothing was done.
    """
    tenant_id = leases[0].tenant_id
    with parts.database.transaction(tenant_id) as connection:
        read = [_load(parts, connection, lease) for lease in sorted(leases, key=lambda lease: lease.subject_key)]
    indexed = iter(_index(parts, [text for one in read for text in one.texts]))
    with parts.database.transaction(tenant_id) as connection:
        # Pages first and together, work last and together: whoever else locks several of them does so in this order.
        lock_pages(connection, tenant_id, [one.owner_id for one in read if one.page is not None])
        owed: set[UUID] = set()
        for one in read:
            mine = [next(indexed) for text in one.texts if text.content.strip()]
            owed |= _save_read(parts, connection, one, mine)
        segments = [Owed(WorkKind.SEGMENT, str(scope_id), scope_id) for scope_id in owed]
        owe(connection, tenant_id, segments, max_attempts=parts.max_attempts)
        complete_all(connection, leases)


@dataclass(frozen=True, slots=True)
class Read:
    """What one row names as it was read: a page with a summary, a statement, or nothing any more."""

    lease: Lease
    owner_id: UUID
    texts: tuple[Text, ...]
    page: PageRow | None = None


def _load(parts: Parts, connection: Connection, lease: Lease) -> Read:
    subject, _, owner = lease.subject_key.partition(":")
    owner_id = UUID(owner)
    if subject == "summary":
        page = find_page(connection, lease.tenant_id, owner_id)
        texts = (_text(owner_id, page.summary, page.lang),) if page and page.summary else ()
        return Read(lease, owner_id, texts, page)
    said = find_knowledge_text(connection, lease.tenant_id, owner_id)
    if said is None:
        return Read(lease, owner_id, ())
    shown = _shown(parts, connection, lease, said.content)
    return Read(lease, owner_id, (Text(owner_id, shown, said.lang, _digest(said.content)),))


def _shown(parts: Parts, connection: Connection, lease: Lease, content: str) -> str:
    """Return the text a statement is found by: with its note, where the policy's design embeds notes."""
    if parts.under_policy(connection, lease.tenant_id, lease.scope_id).policy.ranking != "a_mem":
        return content
    owner_id = UUID(lease.subject_key.partition(":")[2])
    return composite(content, latest_notes(connection, lease.tenant_id, [owner_id]).get(owner_id))


def _save_read(parts: Parts, connection: Connection, read: Read, indexed: Sequence[Indexed]) -> set[UUID]:
    """Index one text if it may still be recalled; return the scope whose pages then wait for a segment, if any."""
    lease = read.lease
    if lease.subject_key.startswith("knowledge:"):
        now = find_knowledge_text(connection, lease.tenant_id, read.owner_id)
        if now is not None and now.recallable:
            _save(parts, lease, connection, "knowledge", indexed)
        return set()
    page = lock_page(connection, lease.tenant_id, read.owner_id)
    if page is None or read.page is None:
        return set()
    if page.summary != read.page.summary:
        raise StaleReadError
    if page.tier == "warm":
        _save(parts, lease, connection, "page", indexed)
    return {lease.scope_id}


def _embed_one(parts: Parts, lease: Lease, _: UUID) -> None:
    embed_together(parts, [lease])


SUBJECTS: dict[str, Callable[[Parts, Lease, UUID], None]] = {
    "turns": _embed_turns,
    "tail": _embed_tail,
    "summary": _embed_one,
    "knowledge": _embed_one,
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
    vectors = [(each.text.owner_id, each.embedded, each.text.digest) for each in indexed]
    postings = [(each.text.owner_id, each.terms) for each in indexed]
    put_vectors(connection, lease.tenant_id, lease.scope_id, space_id, owner_kind, vectors)
    marks = {each.text.owner_id: read_marks(each.text.content) for each in indexed}
    put_postings(connection, lease.tenant_id, lease.scope_id, owner_kind, postings, marks=marks)


def _text(owner_id: UUID, content: str, lang: str) -> Text:
    return Text(owner_id, content, lang, _digest(content))


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8")).digest()
