"""Segments: reading what waits for one, keeping them, and handing pages to distillation in one order."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.errors import StaleReadError
from memoryos_pipeline.domain.segments import Handed, Segment, SegmentPage
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.ledger import owe_once
from memoryos_pipeline.store.vectors import put_vectors

# "no key update": recording turns only refers to the scope and must not wait for us.
LOCK_SCOPE = text("""
    select extract_ordinal from memoryos.scope
     where tenant_id = :tenant_id and scope_id = :scope_id for no key update
""")
# A page whose summary or its vector was given up is passed over until that is replayed.
LOAD_UNASSIGNED = text("""
    select p.page_id, p.conversation_id, p.last_seq, p.sealed_at, p.lang, p.summary, p.keywords, p.topics,
           cast(v.vec as real[]) as vector,
           p.summarized_at is not null and (v.owner_id is not null or e.state = 'done') as is_ready
      from memoryos.page p
      join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
      left join memoryos.work s on s.tenant_id = p.tenant_id and s.kind = 'summarize'
                               and s.subject_key = cast(p.page_id as text)
      left join memoryos.work e on e.tenant_id = p.tenant_id and e.kind = 'embed'
                               and e.subject_key = 'summary:' || cast(p.page_id as text)
      left join memoryos.embedding v on v.tenant_id = p.tenant_id and v.space_id = :space_id
                                    and v.owner_kind = 'page' and v.owner_id = p.page_id
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id
       and p.extract_ordinal is null and p.assigned_at is null
       and coalesce(s.state, '') not in ('dead', 'cancelled') and coalesce(e.state, '') not in ('dead', 'cancelled')
     order by c.created_at, c.conversation_id, p.first_seq limit :limit
""")
LOAD_SEGMENTS = text("""
    select s.segment_id, s.theme, s.summary, s.keywords, cast(v.vec as real[]) as centroid, s.n_visit,
           s.l_interaction, s.last_visit_at, s.heat_linear, s.page_count
      from memoryos.segment s
      left join memoryos.embedding v on v.tenant_id = s.tenant_id and v.space_id = :space_id
                                    and v.owner_kind = 'segment' and v.owner_id = s.segment_id
     where s.tenant_id = :tenant_id and s.scope_id = :scope_id
       and (cast(:only as uuid[]) is null or s.segment_id = any(cast(:only as uuid[])))
     order by s.created_at, s.segment_id
""")
LOAD_WAITING = text("""
    select g.segment_id, p.page_id
      from memoryos.page p
      join memoryos.page_segment g on g.tenant_id = p.tenant_id and g.page_id = p.page_id
      join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id
       and p.extract_ordinal is null and p.assigned_at is not null
     order by c.created_at, c.conversation_id, p.first_seq
""")
SAVE_SEGMENTS = text("""
    insert into memoryos.segment (tenant_id, scope_id, segment_id, theme, summary, keywords, n_visit, l_interaction,
                                  last_visit_at, heat_linear, page_count)
    select :tenant_id, :scope_id, segment_id, theme, summary, keywords, n_visit, l_interaction,
           last_visit_at, heat_linear, page_count
      from jsonb_to_recordset(cast(:segments as jsonb))
           as given(segment_id uuid, theme text, summary text, keywords text[], n_visit integer,
                    l_interaction integer, last_visit_at timestamptz, heat_linear float8, page_count integer)
     order by segment_id
    on conflict (tenant_id, segment_id) do update
       set keywords = excluded.keywords, n_visit = excluded.n_visit, l_interaction = excluded.l_interaction,
           last_visit_at = excluded.last_visit_at, heat_linear = excluded.heat_linear,
           page_count = excluded.page_count, version = segment.version + 1
""")
LINK_PAGES = text("""
    insert into memoryos.page_segment (tenant_id, page_id, segment_id)
    select :tenant_id, page_id, segment_id
      from unnest(cast(:page_ids as uuid[]), cast(:segment_ids as uuid[])) as given(page_id, segment_id)
""")
WARM_PAGES = text("""
    update memoryos.page p
       set assigned_at = :now, heat = 1.0, heat_at = :now, cools_at = given.cools_at, heat_tick = given.heat_tick,
           cools_at_tick = given.cools_at_tick, version = p.version + 1
      from unnest(cast(:page_ids as uuid[]), cast(:cooling as timestamptz[]), cast(:ticks as bigint[]),
                  cast(:cooling_ticks as bigint[])) as given(page_id, cools_at, heat_tick, cools_at_tick)
     where p.tenant_id = :tenant_id and p.page_id = given.page_id and p.assigned_at is null
""")
LOCK_CONVERSATIONS = text("""
    select conversation_id from memoryos.conversation
     where tenant_id = :tenant_id and conversation_id = any(cast(:conversation_ids as uuid[]))
     order by conversation_id for no key update
""")
ADVANCE_ASSIGNED_THROUGH = text("""
    update memoryos.conversation c set assigned_through = greatest(c.assigned_through, given.last_seq)
      from unnest(cast(:conversation_ids as uuid[]), cast(:lasts as bigint[])) as given(conversation_id, last_seq)
     where c.tenant_id = :tenant_id and c.conversation_id = given.conversation_id
""")
TAKE_ORDINALS = text("""
    update memoryos.scope set extract_ordinal = extract_ordinal + :count
     where tenant_id = :tenant_id and scope_id = :scope_id
    returning extract_ordinal - :count
""")
HAND_PAGES = text("""
    update memoryos.page p
       set extract_ordinal = :base + given.place, distill_cause = given.cause, version = p.version + 1
      from unnest(cast(:page_ids as uuid[]), cast(:causes as text[])) with ordinality as given(page_id, cause, place)
     where p.tenant_id = :tenant_id and p.page_id = given.page_id and p.extract_ordinal is null
""")


@dataclass(frozen=True, slots=True)
class UnassignedPage:
    """A page that has no segment yet; `is_ready` when its summary is indexed."""

    page: SegmentPage
    conversation_id: UUID
    last_seq: int
    sealed_at: datetime
    lang: str
    is_ready: bool


@dataclass(frozen=True, slots=True)
class Warmed:
    """A page that gets its segment, and when it cools."""

    page: UnassignedPage
    segment_id: UUID
    cools_at: datetime | None
    heat_tick: int = 0
    cools_at_tick: int | None = None


@dataclass(frozen=True, slots=True)
class _Centroid:
    vector: Iterable[float]
    tokens: int = 0
    truncated: bool = False


def lock_scope(connection: Connection, tenant_id: UUID, scope_id: UUID) -> bool:
    """Take the right to change a scope's segments, heat and order of distillation; False when it is gone."""
    return connection.execute(LOCK_SCOPE, {"tenant_id": tenant_id, "scope_id": scope_id}).first() is not None


def lock_conversations(connection: Connection, tenant_id: UUID, conversation_ids: Iterable[UUID]) -> None:
    """Lock conversations against sealing, summarizing and indexing, in the one order everybody uses."""
    values = {"tenant_id": tenant_id, "conversation_ids": list(conversation_ids)}
    if values["conversation_ids"]:
        connection.execute(LOCK_CONVERSATIONS, values)


def load_unassigned(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, space_id: int, limit: int
) -> list[UnassignedPage]:
    """Return pages without a segment in the order they are assigned in, those given up left out."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "space_id": space_id, "limit": limit}
    return [
        UnassignedPage(
            SegmentPage(row.page_id, row.summary or "", tuple(row.keywords), tuple(row.topics), row.vector),
            row.conversation_id,
            row.last_seq,
            row.sealed_at,
            row.lang,
            row.is_ready,
        )
        for row in connection.execute(LOAD_UNASSIGNED, values)
    ]


def load_segments(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, space_id: int, only: Sequence[UUID] | None = None
) -> list[Segment]:
    """Return a scope's segments (or those named) with centroid and waiting pages, oldest first."""
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    waiting: dict[UUID, list[UUID]] = {}
    for segment_id, page_id in connection.execute(LOAD_WAITING, key):
        waiting.setdefault(segment_id, []).append(page_id)
    named = None if only is None else list(only)
    rows = connection.execute(LOAD_SEGMENTS, {**key, "space_id": space_id, "only": named})
    return [
        Segment(
            segment_id=row.segment_id,
            theme=row.theme,
            summary=row.summary,
            keywords=tuple(row.keywords),
            centroid=row.centroid,
            n_visit=row.n_visit,
            l_interaction=row.l_interaction,
            last_visit_at=row.last_visit_at,
            heat=row.heat_linear,
            page_count=row.page_count,
            waiting=tuple(waiting.get(row.segment_id, ())),
        )
        for row in rows
    ]


def save_segments(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, space_id: int, segments: Iterable[Segment]
) -> None:
    """Store segments as they are now, their centroids with them."""
    kept = list(segments)
    if not kept:
        return
    documents = json.dumps([_document(segment) for segment in kept])
    connection.execute(SAVE_SEGMENTS, {"tenant_id": tenant_id, "scope_id": scope_id, "segments": documents})
    centroids = [(each.segment_id, _Centroid(each.centroid), _digest(each.centroid)) for each in kept if each.centroid]
    put_vectors(connection, tenant_id, scope_id, space_id, "segment", centroids)


def warm_pages(connection: Connection, tenant_id: UUID, *, warmed: Sequence[Warmed], now: datetime) -> None:
    """Give pages their segment and full heat. Raises StaleReadError when one of them had a segment already."""
    if not warmed:
        return
    lasts: dict[UUID, int] = {}
    for each in warmed:
        conversation_id = each.page.conversation_id
        lasts[conversation_id] = max(lasts.get(conversation_id, 0), each.page.last_seq)
    key = {"tenant_id": tenant_id}
    conversations = {"conversation_ids": list(lasts), "lasts": list(lasts.values())}
    pages = {
        "page_ids": [each.page.page.page_id for each in warmed],
        "segment_ids": [each.segment_id for each in warmed],
        "cooling": [each.cools_at for each in warmed],
        "ticks": [each.heat_tick for each in warmed],
        "cooling_ticks": [each.cools_at_tick for each in warmed],
    }
    # Conversations before their pages, like everybody who locks both.
    lock_conversations(connection, tenant_id, lasts)
    if connection.execute(WARM_PAGES, {**key, **pages, "now": now}).rowcount != len(warmed):
        raise StaleReadError
    connection.execute(LINK_PAGES, {**key, **pages})
    connection.execute(ADVANCE_ASSIGNED_THROUGH, {**key, **conversations})


def hand_to_distillation(
    connection: Connection, lease: Lease, *, handed: Sequence[Handed], max_attempts: int
) -> list[int]:
    """Give pages the next places in the scope's order of distillation and owe it; return the places, no gaps.

    The caller holds the scope's lock. Raises StaleReadError when one of the pages had a place already.
    """
    if not handed:
        return []
    key = {"tenant_id": lease.tenant_id}
    taken = {**key, "scope_id": lease.scope_id, "count": len(handed)}
    base: int = connection.execute(TAKE_ORDINALS, taken).scalar_one()
    values = {
        **key,
        "base": base,
        "page_ids": [each.page_id for each in handed],
        "causes": [each.cause for each in handed],
    }
    if connection.execute(HAND_PAGES, values).rowcount != len(handed):
        raise StaleReadError
    owed = [Owed(WorkKind.DISTILL, str(each.page_id), lease.scope_id) for each in handed]
    owe_once(connection, lease.tenant_id, owed, max_attempts=max_attempts)
    events = [event for place, each in enumerate(handed, base + 1) for event in _told(lease, each, place)]
    record_events(connection, lease.tenant_id, events)
    return list(range(base + 1, base + 1 + len(handed)))


def _told(lease: Lease, handed: Handed, place: int) -> Iterator[Event]:
    about = Event(
        "page_handed",
        lease.scope_id,
        subject_id=handed.page_id,
        related_id=handed.segment_id,
        amount=place,
        work_id=lease.work_id,
    )
    if handed.cause == "heated":
        yield replace(about, kind="page_heated", amount=None)
    yield about


def _document(segment: Segment) -> dict[str, Any]:
    return {
        "segment_id": str(segment.segment_id),
        "theme": segment.theme,
        "summary": segment.summary,
        "keywords": list(segment.keywords),
        "n_visit": segment.n_visit,
        "l_interaction": segment.l_interaction,
        "last_visit_at": segment.last_visit_at.isoformat(),
        "heat_linear": segment.heat,
        "page_count": segment.page_count,
    }


def _digest(centroid: Iterable[float] | None) -> bytes:
    return hashlib.sha256(",".join(f"{number:.6g}" for number in centroid or ()).encode()).digest()
