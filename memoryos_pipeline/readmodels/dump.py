"""The canonical dump of a tenant: everything that was said and learnt, without ids, recorded times and heat.

Two stores that took in the same turns in the same order per conversation have equal dumps, however they got them.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

DIGITS = 6
"""Decimals that are kept of weights: beyond them floating point depends on the order of additions."""

TURNS = text("""
    select s.user_id, s.agent_id, c.external_id as conversation, t.seq, t.client_turn_id, t.role, t.speaker, t.content,
           t.parts, t.metadata, t.kind, t.lang, t.occurred_at, t.utc_offset_minutes
      from memoryos.turn t
      join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
      join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
     where t.tenant_id = :tenant_id
""")
PAGES = text("""
    select s.user_id, s.agent_id, c.external_id as conversation, p.first_seq, p.last_seq,
           p.first_turn_at, p.last_turn_at, p.tier, p.lang, p.summary, p.keywords, p.topics, p.continues,
           b.first_seq as continues_page, p.meta_summary,
           p.extracted_at is not null as extracted, p.knowledge_count
      from memoryos.page p
      join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
      join memoryos.scope s on s.tenant_id = p.tenant_id and s.scope_id = p.scope_id
      left join memoryos.page b on b.tenant_id = p.tenant_id and b.page_id = p.prev_page_id
     where p.tenant_id = :tenant_id
""")
SEGMENTS = text("""
    select s.user_id, s.agent_id, g.theme, g.summary, g.keywords, g.page_count,
           (select jsonb_agg(jsonb_build_array(c.external_id, p.first_seq) order by c.external_id, p.first_seq)
              from memoryos.page_segment m
              join memoryos.page p on p.tenant_id = m.tenant_id and p.page_id = m.page_id
              join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
             where m.tenant_id = g.tenant_id and m.segment_id = g.segment_id) as pages
      from memoryos.segment g
      join memoryos.scope s on s.tenant_id = g.tenant_id and s.scope_id = g.scope_id
     where g.tenant_id = :tenant_id
""")
KNOWLEDGE = text("""
    select s.user_id, s.agent_id, k.kind, k.content, k.lang, k.actor, k.slot, k.slot_value, k.keywords, k.importance,
           k.w0, k.strength_days, k.version, k.status, k.event_at, k.event_precision, k.turn_at, k.valid_from,
           k.valid_to, k.close_reason, n.content as superseded_by,
           (select jsonb_agg(jsonb_build_array(c.external_id, o.seq) order by c.external_id, o.seq)
              from memoryos.knowledge_source o
              join memoryos.conversation c on c.tenant_id = o.tenant_id and c.conversation_id = o.conversation_id
             where o.tenant_id = k.tenant_id and o.knowledge_id = k.knowledge_id) as sources
      from memoryos.knowledge k
      join memoryos.scope s on s.tenant_id = k.tenant_id and s.scope_id = k.scope_id
      left join memoryos.knowledge n on n.tenant_id = k.tenant_id and n.knowledge_id = k.superseded_by
     where k.tenant_id = :tenant_id
""")
LINKS = text("""
    select s.user_id, s.agent_id, a.content as source, b.content as target, l.type, l.weight
      from memoryos.knowledge_link l
      join memoryos.scope s on s.tenant_id = l.tenant_id and s.scope_id = l.scope_id
      join memoryos.knowledge a on a.tenant_id = l.tenant_id and a.knowledge_id = l.source_id
      join memoryos.knowledge b on b.tenant_id = l.tenant_id and b.knowledge_id = l.target_id
     where l.tenant_id = :tenant_id
""")
PROFILE = text("""
    select s.user_id, s.agent_id, t.actor, t.dimension, t.level, t.confidence,
           (select jsonb_agg(k.content order by k.content) from memoryos.knowledge k
             where k.tenant_id = t.tenant_id and k.knowledge_id = any(t.knowledge_ids)) as knowledge
      from memoryos.trait t
      join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
     where t.tenant_id = :tenant_id
""")

SECTIONS = {
    "turn": (TURNS, ("user_id", "agent_id", "conversation", "seq")),
    "page": (PAGES, ("user_id", "agent_id", "conversation", "first_seq")),
    "segment": (SEGMENTS, ("user_id", "agent_id", "pages", "theme")),
    "knowledge": (KNOWLEDGE, ("user_id", "agent_id", "sources", "kind", "content", "version")),
    "link": (LINKS, ("user_id", "agent_id", "source", "target", "type")),
    "profile": (PROFILE, ("user_id", "agent_id", "actor", "dimension")),
}
"""What is dumped, and by what it is ordered: user, conversation and seq, then the rest."""


def canonical_dump(connection: Connection, tenant_id: UUID) -> list[str]:
    """Return one JSON line a turn, page, segment, knowledge, link and trait, in an order that holds no chance."""
    return [line for section in SECTIONS for line in _section_lines(connection, tenant_id, section)]


def _section_lines(connection: Connection, tenant_id: UUID, section: str) -> list[str]:
    statement, order = SECTIONS[section]
    rows = [dict(row) for row in connection.execute(statement, {"tenant_id": tenant_id}).mappings()]
    keyed = [(_order_key(row, order), _line({"is": section, **row})) for row in rows]
    return [line for _, line in sorted(keyed)]


def _order_key(row: dict[str, Any], order: tuple[str, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((row[name] is not None, row[name]) for name in order)


def _line(row: dict[str, Any]) -> str:
    plain = {name: _plain(value) for name, value in row.items()}
    return json.dumps(plain, ensure_ascii=False, sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float | Decimal):
        return round(float(value), DIGITS)
    return value
