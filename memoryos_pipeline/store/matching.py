"""Which turns, statements and pages of a scope pass a filter: all of them, whatever is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.store.search import ScopeKey

EVER = (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC))

MATCHING_LAYOUT = (("owner_id", "S16"), ("kind", ">i4"))
"""Newest first. `kind` is 0 for a turn, 1 for knowledge, 2 for a page."""
_TURNS = """
    select t.turn_id as owner_id, 0 as kind, t.occurred_at as at
      from FROM
     where 'turn' = any(cast(:kinds as text[])) and t.tenant_id = :tenant_id and t.scope_id = :scope_id
       and t.kind = 'normal' and t.occurred_at >= :since and t.occurred_at < :until
       and (cast(:conversation_id as uuid) is null or t.conversation_id = cast(:conversation_id as uuid))
       and (cast(:speakers as text[]) is null or t.speaker = any(cast(:speakers as text[])))
"""
_OF_ANY_TIER = "memoryos.turn t"
# A tier is a matter of pages and of where a conversation is sealed, so the turns are read from there by ranges.
_OF_TIERS = """
    (select conversation_id, sealed_through + 1 as first_seq, next_seq - 1 as last_seq from memoryos.conversation
      where tenant_id = :tenant_id and scope_id = :scope_id and 'hot' = any(cast(:tiers as text[]))
      union all
     select conversation_id, first_seq, last_seq from memoryos.page
      where tenant_id = :tenant_id and scope_id = :scope_id and tier = any(cast(:tiers as text[]))) stretch
      join memoryos.turn t on t.tenant_id = :tenant_id and t.conversation_id = stretch.conversation_id
                          and t.seq between stretch.first_seq and stretch.last_seq
"""
_OTHERS = """
    select k.knowledge_id, 1, coalesce(k.event_at, k.turn_at)
      from memoryos.knowledge k
     where 'knowledge' = any(cast(:kinds as text[])) and k.tenant_id = :tenant_id and k.scope_id = :scope_id
       and (k.status = 'active' or (:include_history and k.status in ('superseded', 'closed')))
       and (cast(:tiers as text[]) is null or 'cold' = any(cast(:tiers as text[])))
       and coalesce(k.event_at, k.turn_at) >= :since and coalesce(k.event_at, k.turn_at) < :until
       and (cast(:speakers as text[]) is null or k.actor = any(cast(:speakers as text[])))
       and (cast(:conversation_id as uuid) is null
            or exists (select from memoryos.knowledge_source s
                        where s.tenant_id = :tenant_id and s.knowledge_id = k.knowledge_id
                          and s.conversation_id = cast(:conversation_id as uuid)))
    union all
    select p.page_id, 2, p.last_turn_at
      from memoryos.page p
     where 'page' = any(cast(:kinds as text[])) and p.tenant_id = :tenant_id and p.scope_id = :scope_id
       and p.tier = 'warm' and p.summary is not null and cast(:speakers as text[]) is null
       and (cast(:tiers as text[]) is null or 'warm' = any(cast(:tiers as text[])))
       and p.last_turn_at >= :since and p.first_turn_at < :until
       and (cast(:conversation_id as uuid) is null or p.conversation_id = cast(:conversation_id as uuid))
"""
_PACKED = """
    select string_agg(uuid_send(owner_id) || int4send(kind), '' order by at desc, owner_id)
      from (TURNS union all OTHERS) matching
"""
MATCHING = text(_PACKED.replace("TURNS", _TURNS.replace("FROM", _OF_ANY_TIER)).replace("OTHERS", _OTHERS))
MATCHING_IN_TIERS = text(_PACKED.replace("TURNS", _TURNS.replace("FROM", _OF_TIERS)).replace("OTHERS", _OTHERS))


@dataclass(frozen=True, slots=True)
class Match:
    """What has to hold of an owner: when it happened (half-open), in which conversation, tier and by whom.

    None leaves a condition out. `kinds` are the owner kinds wanted; with `include_history` retired knowledge, too.
    """

    kinds: Sequence[str]
    since: datetime | None = None
    until: datetime | None = None
    tiers: Sequence[str] | None = None
    conversation_id: UUID | None = None
    speakers: Sequence[str] | None = None
    include_history: bool = False


def read_matching(connection: Connection, key: ScopeKey, match: Match) -> bytes:
    """Return records (MATCHING_LAYOUT) of everything in a scope that matches, indexed or not."""
    values = key.bind(
        kinds=list(match.kinds),
        since=match.since or EVER[0],
        until=match.until or EVER[1],
        tiers=None if match.tiers is None else list(match.tiers),
        conversation_id=match.conversation_id,
        speakers=None if match.speakers is None else list(match.speakers),
        include_history=match.include_history,
    )
    statement = MATCHING if match.tiers is None else MATCHING_IN_TIERS
    return connection.execute(statement, values).scalar() or b""
