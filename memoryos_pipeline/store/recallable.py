"""Which turns and which knowledge may be in an index right now; asked again in the transaction that indexes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

# A turn leaves recall when its page is archived and everything known from it is forgotten. The mark stays when
# what was forgotten is purged, and nothing cites the turn any more.
HAS_LEFT_RECALL = """
    (p.tier = 'archived'
     and exists (select from memoryos.knowledge_source s
                  where s.tenant_id = t.tenant_id and s.conversation_id = t.conversation_id and s.seq = t.seq)
     and not exists (select from memoryos.knowledge_source s
                       join memoryos.knowledge k on k.tenant_id = s.tenant_id and k.knowledge_id = s.knowledge_id
                      where s.tenant_id = t.tenant_id and s.conversation_id = t.conversation_id
                        and s.seq = t.seq and k.status <> 'forgotten'))
"""
IS_MARKED = """
    exists (select from memoryos.turn_left l
             where l.tenant_id = t.tenant_id and l.conversation_id = t.conversation_id and l.seq = t.seq)
"""
TURNS_OF_PAGES = """
    select t.turn_id, t.conversation_id, t.seq from memoryos.page p
      join memoryos.turn t on t.tenant_id = p.tenant_id and t.conversation_id = p.conversation_id
                          and t.seq between p.first_seq and p.last_seq
     where p.tenant_id = :tenant_id and p.page_id = any(cast(:page_ids as uuid[]))
"""
FIND_RECALLABLE_TURNS = text(
    f"{TURNS_OF_PAGES} and t.kind = 'normal' and not {IS_MARKED} and not {HAS_LEFT_RECALL} for key share of t"
)
TURNS_ONLY_THESE_CITE = """
    select distinct t.turn_id, t.conversation_id, t.seq from memoryos.knowledge_source s
      join memoryos.turn t on t.tenant_id = s.tenant_id and t.conversation_id = s.conversation_id and t.seq = s.seq
     where s.tenant_id = :tenant_id and s.knowledge_id = any(cast(:ids as uuid[]))
       and not exists (select from memoryos.knowledge_source other
                        where other.tenant_id = s.tenant_id and other.conversation_id = s.conversation_id
                          and other.seq = s.seq and other.knowledge_id <> all(cast(:ids as uuid[])))
"""
MARK = """
    with gone as (TURNS),
    marked as (
        insert into memoryos.turn_left (tenant_id, conversation_id, seq)
        select :tenant_id, conversation_id, seq from gone order by conversation_id, seq
        on conflict do nothing)
    select turn_id from gone
"""
MARK_LEFT_TURNS = text(MARK.replace("TURNS", f"{TURNS_OF_PAGES} and {HAS_LEFT_RECALL}"))
MARK_TURNS_OF = text(MARK.replace("TURNS", TURNS_ONLY_THESE_CITE))
UNMARK_TURNS_OF = text("""
    delete from memoryos.turn_left l using memoryos.knowledge_source s
     where l.tenant_id = :tenant_id and s.tenant_id = :tenant_id and s.knowledge_id = any(cast(:ids as uuid[]))
       and l.conversation_id = s.conversation_id and l.seq = s.seq
""")
FIND_KNOWLEDGE = text("""
    select content, lang, status = 'active' as recallable from memoryos.knowledge
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id
       for share
""")


@dataclass(frozen=True, slots=True)
class KnowledgeText:
    """What is indexed of a knowledge row; its content never changes, whether it is recallable does."""

    content: str
    lang: str
    recallable: bool


def find_recallable_turns(connection: Connection, tenant_id: UUID, page: UUID) -> set[UUID]:
    """Return which turns of a page may be in an index, and keep them from being deleted meanwhile.

    Not those injected by a prompt or by recall itself, and not those that forgetting took out of recall.
    """
    values = {"tenant_id": tenant_id, "page_ids": [page]}
    return set(connection.execute(FIND_RECALLABLE_TURNS, values).scalars())


def mark_left_turns(connection: Connection, tenant_id: UUID, pages: Sequence[UUID]) -> list[UUID]:
    """Mark the turns of these pages that leave recall: page archived, all they taught us forgotten; return them.

    The caller removes their index rows.
    """
    values = {"tenant_id": tenant_id, "page_ids": list(pages)}
    return list(connection.execute(MARK_LEFT_TURNS, values).scalars())


def mark_turns_of(connection: Connection, tenant_id: UUID, knowledge_ids: Sequence[UUID]) -> list[UUID]:
    """Mark the turns that nothing but these rows cites, whatever tier their page is in; return them."""
    values = {"tenant_id": tenant_id, "ids": list(knowledge_ids)}
    return list(connection.execute(MARK_TURNS_OF, values).scalars())


def unmark_turns_of(connection: Connection, tenant_id: UUID, knowledge_ids: Sequence[UUID]) -> None:
    """Let the turns that these rows cite be recalled again."""
    connection.execute(UNMARK_TURNS_OF, {"tenant_id": tenant_id, "ids": list(knowledge_ids)})


def find_knowledge_text(connection: Connection, tenant_id: UUID, knowledge_id: UUID) -> KnowledgeText | None:
    """Return the text of a knowledge row and keep it from being forgotten meanwhile; None when it is gone."""
    row = connection.execute(FIND_KNOWLEDGE, {"tenant_id": tenant_id, "knowledge_id": knowledge_id}).first()
    return KnowledgeText(*row) if row else None
