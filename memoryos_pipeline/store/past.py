"""What a memory held at a moment: its turns and the statements that were held true, with the turns they came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.store.found import FoundKnowledge, FoundTurn
from memoryos_pipeline.store.search import ScopeKey

MAX_TURNS = 20_000
"""Turns read at most, the newest: a look into the past reads a memory, not an index."""

TURNS = text("""
    select t.turn_id, t.conversation_key as conversation_id, t.conversation_id as external_id, t.seq, t.client_turn_id,
           t.role, t.speaker, t.content, t.lang, t.occurred_at, t.utc_offset_minutes, t.tier = 'hot' as is_hot, t.tier
      from memory_v1.turns_as_of(:at) t
     where t.tenant_id = :tenant_id and t.scope_id = :scope_id and t.kind = 'normal'
       and not exists (select from memoryos.turn_left l
                        where l.tenant_id = t.tenant_id and l.conversation_id = t.conversation_key and l.seq = t.seq
                          and l.left_at <= :at)
     order by t.occurred_at desc, t.seq desc limit :limit
""")
KNOWLEDGE = text("""
    select k.knowledge_id, k.lineage_id, k.version, k.kind, k.content, k.lang, k.actor, k.event_at, k.event_precision,
           k.turn_at, k.status, k.weight, k.source_turn_ids
      from memory_v1.knowledge_as_of(:at) k
     where k.tenant_id = :tenant_id and k.scope_id = :scope_id and k.status = 'active'
     order by k.turn_at, k.knowledge_id
""")


@dataclass(frozen=True, slots=True)
class PastStatement:
    """A statement as it was held at a moment, its weight then, and the turns it had come from by then."""

    statement: FoundKnowledge
    weight: float
    source_turn_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """What could be recalled at a moment, and in which tier each turn was."""

    turns: tuple[FoundTurn, ...]
    statements: tuple[PastStatement, ...]
    tiers: Mapping[UUID, str]


def read_past(connection: Connection, key: ScopeKey, at: datetime) -> Past:
    """Return what a memory held at a moment of recorded time; what was purged or erased since is not in it."""
    turns = connection.execute(TURNS, key.bind(at=at, limit=MAX_TURNS)).all()
    statements = connection.execute(KNOWLEDGE, key.bind(at=at))
    return Past(tuple(map(_turn, turns)), tuple(map(_statement, statements)), {row.turn_id: row.tier for row in turns})


def _turn(row: Row[Any]) -> FoundTurn:
    values = dict(row._mapping)
    from_utc = timezone(timedelta(minutes=values.pop("utc_offset_minutes")))
    values.pop("tier")
    return FoundTurn(**{**values, "occurred_at": row.occurred_at.astimezone(from_utc)})


def _statement(row: Row[Any]) -> PastStatement:
    values = dict(row._mapping)
    weight, sources = values.pop("weight"), tuple(values.pop("source_turn_ids"))
    return PastStatement(FoundKnowledge(**values), weight, sources)
