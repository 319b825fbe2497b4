"""What recall shows of what it found: turns with their text, knowledge, pages; and what is shown whatever is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.store.recallable import IS_MARKED
from memoryos_pipeline.store.search import ScopeKey

_TURN = """
    select t.turn_id, t.conversation_id, c.external_id, t.seq, t.client_turn_id, t.role, t.speaker, t.content, t.lang,
           t.occurred_at, t.utc_offset_minutes, t.seq > c.sealed_through as is_hot
"""
TURNS_AT = text(f"""
    {_TURN}
      from unnest(cast(:conversation_ids as uuid[]), cast(:seqs as bigint[])) as wanted(conversation_id, seq)
      join memoryos.turn t
        on t.tenant_id = :tenant_id and t.conversation_id = wanted.conversation_id and t.seq = wanted.seq
      join memoryos.conversation c on c.tenant_id = :tenant_id and c.conversation_id = t.conversation_id
     where t.scope_id = :scope_id
""")
HOT_TURNS = text(
    f"""
    {_TURN}
      from (select * from memoryos.conversation
             where tenant_id = :tenant_id and scope_id = :scope_id and indexed_through < next_seq - 1
               and sealed_through < next_seq - 1
               and (external_id = :external_id or cast(:external_id as text) is null)
             order by last_turn_at desc, conversation_id limit 1) c
      join memoryos.turn t
        on t.tenant_id = :tenant_id and t.conversation_id = c.conversation_id and t.seq > c.sealed_through
     where t.kind = 'normal' and not {IS_MARKED}
     order by t.seq desc limit :limit
"""  # noqa: S608 - joined from constants
)
KNOWLEDGE = text("""
    select k.knowledge_id, k.lineage_id, k.version, k.kind, k.content, k.lang, k.actor, k.event_at, k.event_precision,
           k.turn_at, k.status
      from memoryos.knowledge k
     where k.tenant_id = :tenant_id and k.scope_id = :scope_id and k.knowledge_id = any(cast(:knowledge_ids as uuid[]))
""")
PAGES = text("""
    select p.page_id, p.first_turn_at, p.summary
      from memoryos.page p
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.page_id = any(cast(:page_ids as uuid[]))
""")

# A trait stands as long as something it was concluded from is live truth.
TRAITS = text("""
    select actor, dimension, level, confidence, updated_at from memoryos.trait t
     where tenant_id = :tenant_id and scope_id = :scope_id
       and exists (select from memoryos.knowledge k
                    where k.tenant_id = :tenant_id and k.knowledge_id = any(t.knowledge_ids) and k.status = 'active')
     order by confidence desc, actor, dimension limit :limit
""")

PINNED = text("""
    select 'page' as kind, page_id as owner_id, summary as content, first_turn_at as at, heat as weight
      from memoryos.page
     where tenant_id = :tenant_id and scope_id = :scope_id and pinned_at is not null and tier = 'warm'
       and summary is not null
    union all
    select 'knowledge', knowledge_id, content, turn_at, importance from memoryos.knowledge
     where tenant_id = :tenant_id and scope_id = :scope_id and pinned_at is not null and status = 'active'
     order by weight desc, owner_id limit :limit
""")

Place = tuple[UUID, int]
"""Conversation and seq: where a turn stands."""


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn with its text, and what its caller calls it. `occurred_at` has the offset it was said in."""

    turn_id: UUID
    conversation_id: UUID
    external_id: str
    seq: int
    client_turn_id: str
    role: str
    speaker: str
    content: str
    lang: str
    occurred_at: datetime
    is_hot: bool


@dataclass(frozen=True, slots=True)
class FoundKnowledge:
    """Knowledge with its text."""

    knowledge_id: UUID
    lineage_id: UUID
    version: int
    kind: str
    content: str
    lang: str
    actor: str
    event_at: datetime | None
    event_precision: str | None
    turn_at: datetime
    status: str


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page with its summary."""

    page_id: UUID
    first_turn_at: datetime
    summary: str


@dataclass(frozen=True, slots=True)
class FoundTrait:
    """One line of the profile."""

    actor: str
    dimension: str
    level: str
    confidence: float
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FoundPin:
    """A page or knowledge that is shown whatever is asked."""

    kind: str
    owner_id: UUID
    content: str
    at: datetime
    weight: float


def read_turns_at(connection: Connection, key: ScopeKey, places: Sequence[Place]) -> dict[Place, FoundTurn]:
    """Return the turns at these places of a scope."""
    if not places:
        return {}
    values = key.bind(conversation_ids=[where for where, _ in places], seqs=[seq for _, seq in places])
    found = map(_turn, connection.execute(TURNS_AT, values))
    return {(turn.conversation_id, turn.seq): turn for turn in found}


def read_hot_turns(
    connection: Connection, key: ScopeKey, *, external_id: str | None = None, limit: int = 500
) -> list[FoundTurn]:
    """Return the newest hot turns of a conversation, or of the one in which somebody spoke last, newest first."""
    values = key.bind(external_id=external_id, limit=limit)
    return [_turn(row) for row in connection.execute(HOT_TURNS, values)]


def read_knowledge(connection: Connection, key: ScopeKey, knowledge_ids: Sequence[UUID]) -> dict[UUID, FoundKnowledge]:
    """Return these pieces of knowledge."""
    if not knowledge_ids:
        return {}
    rows = connection.execute(KNOWLEDGE, key.bind(knowledge_ids=list(knowledge_ids)))
    return {row.knowledge_id: FoundKnowledge(*row) for row in rows}


def read_pages(connection: Connection, key: ScopeKey, page_ids: Sequence[UUID]) -> dict[UUID, FoundPage]:
    """Return these pages."""
    if not page_ids:
        return {}
    return {row.page_id: FoundPage(*row) for row in connection.execute(PAGES, key.bind(page_ids=list(page_ids)))}


def read_traits(connection: Connection, key: ScopeKey, *, limit: int = 50) -> list[FoundTrait]:
    """Return the traits that still stand on live knowledge, most certain first."""
    return [FoundTrait(*row) for row in connection.execute(TRAITS, key.bind(limit=limit))]


def read_pins(connection: Connection, key: ScopeKey, *, limit: int = 20) -> list[FoundPin]:
    """Return what is pinned in a scope, weightiest first."""
    return [FoundPin(*row) for row in connection.execute(PINNED, key.bind(limit=limit))]


def local_time(at: datetime, offset_minutes: int) -> datetime:
    """Return the moment in the offset it was said in."""
    return at.astimezone(timezone(timedelta(minutes=offset_minutes)))


def _turn(row: Row[Any]) -> FoundTurn:
    values: list[Any] = list(row)
    values[9:11] = [local_time(row.occurred_at, row.utc_offset_minutes)]
    return FoundTurn(*values)
