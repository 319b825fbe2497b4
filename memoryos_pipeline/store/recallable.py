"""Which turns and which knowledge may be in an index right now; asked again in the transaction that indexes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

# A turn has left recall when its page is archived and everything known from it is forgotten.
HAS_LEFT_RECALL = """
    (p.tier = 'archived'
     and exists (select from memoryos.knowledge_source s
                  where s.tenant_id = t.tenant_id and s.conversation_id = t.conversation_id and s.seq = t.seq)
     and not exists (select from memoryos.knowledge_source s
                       join memoryos.knowledge k on k.tenant_id = s.tenant_id and k.knowledge_id = s.knowledge_id
                      where s.tenant_id = t.tenant_id and s.conversation_id = t.conversation_id
                        and s.seq = t.seq and k.status <> 'forgotten'))
"""
TURNS_OF_PAGES = """
    select t.turn_id from memoryos.page p
      join memoryos.turn t on t.tenant_id = p.tenant_id and t.conversation_id = p.conversation_id
                          and t.seq between p.first_seq and p.last_seq
     where p.tenant_id = :tenant_id and p.page_id = any(cast(:page_ids as uuid[]))
"""
FIND_RECALLABLE_TURNS = text(f"{TURNS_OF_PAGES} and t.kind = 'normal' and not {HAS_LEFT_RECALL} for key share of t")
FIND_LEFT_TURNS = text(f"{TURNS_OF_PAGES} and {HAS_LEFT_RECALL}")
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


def find_left_turns(connection: Connection, tenant_id: UUID, pages: Sequence[UUID]) -> list[UUID]:
    """Return the turns of these pages that are out of recall: page archived, all they taught us forgotten."""
    values = {"tenant_id": tenant_id, "page_ids": list(pages)}
    return list(connection.execute(FIND_LEFT_TURNS, values).scalars())


def find_knowledge_text(connection: Connection, tenant_id: UUID, knowledge_id: UUID) -> KnowledgeText | None:
    """Return the text of a knowledge row and keep it from being forgotten meanwhile; None when it is gone."""
    row = connection.execute(FIND_KNOWLEDGE, {"tenant_id": tenant_id, "knowledge_id": knowledge_id}).first()
    return KnowledgeText(*row) if row else None
