"""Notes on knowledge, version after version; the latest counts, and none is changed."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.notes import Note

LATEST = text("""
    select distinct on (knowledge_id) knowledge_id, version, context, keywords, tags, cause_knowledge_id
      from memoryos.knowledge_note
     where tenant_id = :tenant_id and knowledge_id = any(cast(:ids as uuid[]))
     order by knowledge_id, version desc
""")
PUT = text("""
    insert into memoryos.knowledge_note (tenant_id, knowledge_id, version, context, keywords, tags, cause_knowledge_id)
    values (:tenant_id, :knowledge_id, :version, :context, :keywords, :tags, :cause_id)
    on conflict do nothing
""")


def latest_notes(connection: Connection, tenant_id: UUID, ids: Iterable[UUID]) -> dict[UUID, Note]:
    """Return the latest note of each of these rows that has one."""
    rows = connection.execute(LATEST, {"tenant_id": tenant_id, "ids": list(ids)})
    return {
        row.knowledge_id: Note(
            row.knowledge_id, row.version, row.context, tuple(row.keywords), tuple(row.tags), row.cause_knowledge_id
        )
        for row in rows
    }


def put_notes(connection: Connection, tenant_id: UUID, notes: Sequence[Note]) -> None:
    """Store versions of notes; one that is there already stays."""
    values = [
        {
            "tenant_id": tenant_id, "knowledge_id": note.knowledge_id, "version": note.version,
            "context": note.context, "keywords": list(note.keywords), "tags": list(note.tags),
            "cause_id": note.cause_id,
        }
        for note in notes
    ]  # fmt: skip
    if values:
        connection.execute(PUT, values)
