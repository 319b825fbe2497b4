"""A statement in new words: the next version of its line, with everything the old one stood on."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

FIND_TWIN = text("""
    select twin.knowledge_id from memoryos.knowledge k
      join memoryos.knowledge twin on twin.tenant_id = k.tenant_id and twin.scope_id = k.scope_id
                                  and twin.kind = k.kind and twin.status = 'active'
     where k.tenant_id = :tenant_id and k.knowledge_id = :knowledge_id and twin.knowledge_id <> k.knowledge_id
       and twin.content_sha256 = :content_key
""")
COPY = text("""
    insert into memoryos.knowledge (
        tenant_id, knowledge_id, scope_id, lineage_id, version, kind, content, content_sha256, lang, actor, slot,
        keywords, attributes, importance, strength_days, last_reinforced_at, forget_at, pinned_at, event_at,
        event_precision, turn_at, valid_from, extracted_by, expires_at)
    select tenant_id, :new_id, scope_id, lineage_id, :version, kind, :content, :content_key, :lang, actor, slot,
           keywords, attributes, importance, strength_days, :now, :forget_at, pinned_at, event_at,
           event_precision, :now, :now, :revised_by, expires_at
      from memoryos.knowledge where tenant_id = :tenant_id and knowledge_id = :knowledge_id
""")
COPY_SOURCES = text("""
    insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
    select tenant_id, :new_id, conversation_id, seq, page_id from memoryos.knowledge_source
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id
""")
COPY_NOTE = text("""
    insert into memoryos.knowledge_note (tenant_id, knowledge_id, version, context, keywords, tags)
    select tenant_id, :new_id, 1, context, keywords, tags from memoryos.knowledge_note
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id order by version desc limit 1
""")
# Whom the new words do not name they say nothing about.
COPY_MENTIONS = text("""
    insert into memoryos.mention (tenant_id, knowledge_id, entity_id)
    select m.tenant_id, :new_id, m.entity_id from memoryos.mention m
      join memoryos.entity e on e.tenant_id = m.tenant_id and e.entity_id = m.entity_id
     where m.tenant_id = :tenant_id and m.knowledge_id = :knowledge_id and position(e.name_norm in :folded) > 0
""")


@dataclass(frozen=True, slots=True)
class Revision:
    """What the next version says; everything else it takes over."""

    new_id: UUID
    version: int
    content: str
    content_key: bytes
    folded: str
    """The content with forms, case and spaces folded, as names are compared."""
    lang: str
    now: datetime
    forget_at: datetime | None
    revised_by: str


def find_twin(connection: Connection, tenant_id: UUID, knowledge_id: UUID, content_key: bytes) -> UUID | None:
    """Return another live statement of the same memory that says this already."""
    values = {"tenant_id": tenant_id, "knowledge_id": knowledge_id, "content_key": content_key}
    found: UUID | None = connection.execute(FIND_TWIN, values).scalar()
    return found


def copy_statement(connection: Connection, tenant_id: UUID, knowledge_id: UUID, revision: Revision) -> None:
    """Write the next version of a statement, with its sources, its latest note and whom it still names."""
    values = {
        "tenant_id": tenant_id, "knowledge_id": knowledge_id, "new_id": revision.new_id,
        "version": revision.version, "content": revision.content,
        "content_key": revision.content_key, "folded": revision.folded, "lang": revision.lang, "now": revision.now,
        "forget_at": revision.forget_at, "revised_by": revision.revised_by,
    }  # fmt: skip
    for statement in (COPY, COPY_SOURCES, COPY_NOTE, COPY_MENTIONS):
        connection.execute(statement, values)
