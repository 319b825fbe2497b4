"""What recall reads: who speaks in a scope, term statistics, postings, turns with their neighbours, knowledge, pages.

Every statement names the tenant and the scope, and is served by btree indexes through leakproof operators.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.store.recallable import IS_MARKED
from memoryos_pipeline.store.vectors import SpaceOwner

FRAME = text("""
    with recursive spoken as (
        (select speaker, role, 1 as n from memoryos.turn
          where tenant_id = :tenant_id and scope_id = :scope_id order by speaker, role limit 1)
        union all
        select following.speaker, following.role, spoken.n + 1
          from spoken cross join lateral (
               select speaker, role from memoryos.turn
                where tenant_id = :tenant_id and scope_id = :scope_id
                  and (speaker, role) > (spoken.speaker, spoken.role)
                order by speaker, role limit 1) following
         where spoken.n < :speaker_limit)
    select memoryos.now() as now,
           coalesce((select jsonb_agg(jsonb_build_array(speaker, role)) from spoken), '[]') as speakers,
           (select space_id from memoryos.vector_space
             where model = :model and revision = :revision and dimensions = :dimensions
               and token_cap = :token_cap) as space_id
""")

STATISTICS = text("""
    select owner_kind, cast(null as text) as term, count(*) as owners, coalesce(sum(terms), 0) as terms
      from memoryos.posting_length
     where tenant_id = :tenant_id and scope_id = :scope_id group by owner_kind
    union all
    select kind, term,
           (select count(*) from (select from memoryos.posting p
                                   where p.tenant_id = :tenant_id and p.scope_id = :scope_id
                                     and p.term = asked.term and p.owner_kind = asked.kind limit :count_limit) counted),
           0
      from (select kind, term from unnest(cast(:kinds as text[])) kind, unnest(cast(:terms as text[])) term) asked
""")

_POSTINGS = """
    select p.term, p.owner_kind, p.owner_id, p.tf, l.terms
      from memoryos.posting p
      join memoryos.posting_length l on l.tenant_id = :tenant_id and l.scope_id = :scope_id
                                    and l.owner_kind = p.owner_kind and l.owner_id = p.owner_id
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id
       and p.term = any(cast(:terms as text[])) and p.owner_kind = any(cast(:kinds as text[]))
"""
POSTINGS = text(_POSTINGS)
POSTINGS_OF = text(f"{_POSTINGS} and p.owner_id = any(cast(:owner_ids as uuid[]))")

_TURNS = """
    with found as (
        select conversation_id, seq from memoryos.turn
         where tenant_id = :tenant_id and turn_id = any(cast(:turn_ids as uuid[])) and scope_id = :scope_id),
    tail as (
        select c.conversation_id, fresh.seq from memoryos.conversation c
         cross join lateral (
               select seq from memoryos.turn t
                where t.tenant_id = :tenant_id and t.conversation_id = c.conversation_id
                  and t.seq > c.indexed_through
                order by seq desc limit :tail_limit) fresh
         where c.tenant_id = :tenant_id and c.scope_id = :scope_id and c.indexed_through < c.next_seq - 1),
    dated as (
        select turn.conversation_id, turn.seq
          from unnest(cast(:starts as timestamptz[]), cast(:ends as timestamptz[])) as span(starts_at, ends_at)
         cross join lateral (
               select conversation_id, seq from memoryos.turn t
                where t.tenant_id = :tenant_id and t.scope_id = :scope_id
                  and t.occurred_at >= span.starts_at and t.occurred_at < span.ends_at
                order by occurred_at desc limit :dated_limit) turn),
    wanted as (
        select conversation_id, seq + step as seq from found cross join generate_series(-1, 1) step
        union
        select conversation_id, seq from tail
        union
        select conversation_id, seq from dated)
    select t.turn_id, t.conversation_id, c.external_id, t.seq, t.client_turn_id, t.role, t.speaker, t.content, t.lang,
           t.occurred_at, t.utc_offset_minutes, t.seq > c.sealed_through as is_hot, l.terms
      from wanted w
      join memoryos.turn t
        on t.tenant_id = :tenant_id and t.conversation_id = w.conversation_id and t.seq = w.seq
      join memoryos.conversation c on c.tenant_id = :tenant_id and c.conversation_id = w.conversation_id
      left join memoryos.posting_length l
        on l.tenant_id = :tenant_id and l.scope_id = :scope_id and l.owner_kind = 'turn' and l.owner_id = t.turn_id
     where t.kind = 'normal'
       and (l.terms is not null or (t.seq > c.indexed_through and not IS_MARKED))
"""
TURNS = text(_TURNS.replace("IS_MARKED", IS_MARKED))

KNOWLEDGE = text("""
    with found as (
        select knowledge_id, lineage_id from memoryos.knowledge
         where tenant_id = :tenant_id and knowledge_id = any(cast(:knowledge_ids as uuid[]))),
    wanted as (
        select knowledge_id from found
        union
        select k.knowledge_id from found
          join memoryos.knowledge k on k.tenant_id = :tenant_id and k.lineage_id = found.lineage_id
         where :include_history)
    select k.knowledge_id, k.lineage_id, k.version, k.kind, k.content, k.lang, k.actor, k.w0, k.strength_days,
           k.last_reinforced_at, k.event_at, k.event_precision, k.turn_at, k.status, k.valid_from, k.valid_to,
           k.pinned_at,
           (select coalesce(jsonb_agg(jsonb_build_array(s.conversation_id, s.seq)
                                      order by s.conversation_id, s.seq), '[]')
              from memoryos.knowledge_source s
             where s.tenant_id = :tenant_id and s.knowledge_id = k.knowledge_id) as sources
      from wanted w
      join memoryos.knowledge k on k.tenant_id = :tenant_id and k.knowledge_id = w.knowledge_id
     where k.scope_id = :scope_id
       and (k.status = 'active' or (:include_history and k.status in ('superseded', 'closed')))
""")

PAGES = text("""
    select p.page_id, p.conversation_id, p.first_seq, p.last_seq, p.first_turn_at, p.last_turn_at, p.lang, p.summary,
           p.heat, p.heat_at
      from memoryos.page p
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.page_id = any(cast(:page_ids as uuid[]))
       and p.tier = 'warm' and p.summary is not null
""")

SOURCE_TURNS = text("""
    select t.conversation_id, t.seq, t.turn_id, t.client_turn_id, c.external_id, t.utc_offset_minutes
      from unnest(cast(:conversation_ids as uuid[]), cast(:seqs as bigint[])) as wanted(conversation_id, seq)
      join memoryos.turn t
        on t.tenant_id = :tenant_id and t.conversation_id = wanted.conversation_id and t.seq = wanted.seq
      join memoryos.conversation c on c.tenant_id = :tenant_id and c.conversation_id = t.conversation_id
     where t.scope_id = :scope_id
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

SPEAKER_LIMIT = 64
COUNT_LIMIT = 20_000
"""A term in more owners than this is common, and counting it exactly would cost more than it tells."""
TAIL_LIMIT = 500
"""Turns of one conversation, newest first, that are searched before they are indexed."""
DATED_LIMIT = 100
"""Turns of one span of time, newest first, that are candidates for their date alone."""


@dataclass(frozen=True, slots=True)
class ScopeKey:
    """Whose memory is read: every statement is bound to both."""

    tenant_id: UUID
    scope_id: UUID

    def bind(self, **values: Any) -> dict[str, Any]:
        """Return statement values with the tenant and the scope among them."""
        return {"tenant_id": self.tenant_id, "scope_id": self.scope_id, **values}


@dataclass(frozen=True, slots=True)
class Frame:
    """What has to be known before a question can be read: the time, who speaks (name, role), the vector space."""

    now: datetime
    speakers: tuple[tuple[str, str], ...]
    space_id: int | None


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Per owner kind: how many owners are indexed and their terms in all; per kind and term: owners that have it."""

    owners: dict[str, int]
    terms: dict[str, int]
    frequency: dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class FoundPosting:
    """One term of one owner, with the owner's length in terms."""

    term: str
    owner_kind: str
    owner_id: UUID
    tf: int
    length: int


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn that may be recalled; `terms` is None while it is not indexed. `occurred_at` has its own offset."""

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
    terms: int | None


@dataclass(frozen=True, slots=True)
class FoundKnowledge:
    """Knowledge that may be recalled; `sources` are (conversation id, seq)."""

    knowledge_id: UUID
    lineage_id: UUID
    version: int
    kind: str
    content: str
    lang: str
    actor: str
    w0: float
    strength_days: float
    last_reinforced_at: datetime
    event_at: datetime | None
    event_precision: str | None
    turn_at: datetime
    status: str
    valid_from: datetime
    valid_to: datetime | None
    pinned_at: datetime | None
    sources: tuple[tuple[UUID, int], ...]


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A warm page with its summary."""

    page_id: UUID
    conversation_id: UUID
    first_seq: int
    last_seq: int
    first_turn_at: datetime
    last_turn_at: datetime
    lang: str
    summary: str
    heat: float
    heat_at: datetime


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """Where something comes from, as the caller named it."""

    conversation_id: UUID
    seq: int
    turn_id: UUID
    client_turn_id: str
    external_id: str
    utc_offset_minutes: int


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


def read_frame(connection: Connection, key: ScopeKey, embedder: SpaceOwner) -> Frame:
    """Return the time, the speakers of the scope (64 at most) and the embedder's vector space, if it has any vector."""
    space = {name: getattr(embedder, name) for name in ("model", "revision", "dimensions", "token_cap")}
    row = connection.execute(FRAME, key.bind(speaker_limit=SPEAKER_LIMIT, **space)).one()
    return Frame(row.now, tuple((name, role) for name, role in row.speakers), row.space_id)


def read_statistics(
    connection: Connection, key: ScopeKey, *, kinds: Sequence[str], terms: Sequence[str]
) -> TermStatistics:
    """Return the document statistics of a scope for these kinds and terms."""
    values = key.bind(kinds=list(kinds), terms=list(terms), count_limit=COUNT_LIMIT)
    statistics = TermStatistics({}, {}, {})
    for kind, term, owners, length in connection.execute(STATISTICS, values):
        if term is None:
            statistics.owners[kind], statistics.terms[kind] = owners, int(length)
        else:
            statistics.frequency[kind, term] = owners
    return statistics


def read_postings(
    connection: Connection, key: ScopeKey, *, kinds: Sequence[str], terms: Sequence[str],
    owner_ids: Sequence[UUID] | None = None,
) -> list[FoundPosting]:  # fmt: skip
    """Return the postings of these terms, of the whole scope or of the given owners only."""
    values = key.bind(kinds=list(kinds), terms=list(terms))
    if owner_ids is None:
        return [FoundPosting(*row) for row in connection.execute(POSTINGS, values)]
    values["owner_ids"] = list(owner_ids)
    return [FoundPosting(*row) for row in connection.execute(POSTINGS_OF, values)]


def read_turns(
    connection: Connection,
    key: ScopeKey,
    turn_ids: Sequence[UUID],
    *,
    spans: Sequence[tuple[datetime, datetime]],
) -> list[FoundTurn]:
    """Return these turns, the turn before and after each, the newest of each span, and all that are not indexed yet."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    values = key.bind(turn_ids=list(turn_ids), tail_limit=TAIL_LIMIT, starts=starts, ends=ends, dated_limit=DATED_LIMIT)
    return [_turn(row) for row in connection.execute(TURNS, values)]


def read_knowledge(
    connection: Connection, key: ScopeKey, knowledge_ids: Sequence[UUID], *, include_history: bool
) -> list[FoundKnowledge]:
    """Return live knowledge, with `include_history` also the retired versions of what was found."""
    values = key.bind(knowledge_ids=list(knowledge_ids), include_history=include_history)
    return [_knowledge(row) for row in connection.execute(KNOWLEDGE, values)]


def read_pages(connection: Connection, key: ScopeKey, page_ids: Sequence[UUID]) -> list[FoundPage]:
    """Return the warm ones of these pages that have a summary."""
    return [FoundPage(*row) for row in connection.execute(PAGES, key.bind(page_ids=list(page_ids)))]


def read_source_turns(
    connection: Connection, key: ScopeKey, places: Sequence[tuple[UUID, int]]
) -> dict[tuple[UUID, int], SourceTurn]:
    """Return what the turns at these places are called."""
    values = key.bind(conversation_ids=[where for where, _ in places], seqs=[seq for _, seq in places])
    turns = (SourceTurn(*row) for row in connection.execute(SOURCE_TURNS, values))
    return {(turn.conversation_id, turn.seq): turn for turn in turns}


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
    # Positions, not names: hundreds of rows a search.
    values: list[Any] = list(row)
    values[9:11] = [local_time(row.occurred_at, row.utc_offset_minutes)]
    return FoundTurn(*values)


def _knowledge(row: Row[Any]) -> FoundKnowledge:
    sources = tuple((UUID(where), seq) for where, seq in row.sources)
    return FoundKnowledge(**{**row._asdict(), "sources": sources})
