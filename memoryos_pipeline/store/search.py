"""What recall searches: who speaks in a scope, term statistics, postings, and candidates as packed columns.

Every statement names the tenant and the scope, and is served by btree indexes through leakproof operators. Candidates
come by the thousand, so they come as records of fixed length in one value (the layouts below), not as rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

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
               and token_cap = :token_cap) as space_id,
           (select (select indisvalid from pg_index
                     where indexrelid = to_regclass('memoryos.embedding_hnsw_' || space_id))
              from memoryos.vector_space
             where model = :model and revision = :revision and dimensions = :dimensions
               and token_cap = :token_cap) as has_hnsw
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

POSTING_LAYOUT = (("owner_id", "S16"), ("term", ">i4"), ("kind", ">i4"), ("tf", ">i4"), ("length", ">i4"))
"""`term` and `kind` are places in the lists that were asked for, from 1."""
_POSTINGS = """
    select string_agg(uuid_send(p.owner_id) || int4send(cast(asked.place as integer))
                      || int4send(array_position(cast(:kinds as text[]), p.owner_kind))
                      || int4send(p.tf) || int4send(p.terms), '')
      from unnest(cast(:terms as text[])) with ordinality asked(term, place)
      join memoryos.posting p on p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.term = asked.term
                             and p.owner_kind = any(cast(:kinds as text[]))
"""
POSTINGS = text(_POSTINGS)
# Each owner of its own kind and each term: as many looks into the index, however common the terms are.
POSTINGS_OF = text("""
    select string_agg(uuid_send(p.owner_id) || int4send(cast(asked.place as integer))
                      || int4send(array_position(cast(:kinds as text[]), p.owner_kind))
                      || int4send(p.tf) || int4send(p.terms), '')
      from unnest(cast(:terms as text[])) with ordinality asked(term, place)
     cross join unnest(cast(:owner_ids as uuid[]), cast(:owner_kinds as text[])) as owner(owner_id, owner_kind)
     cross join lateral (
           select owner_id, owner_kind, tf, terms from memoryos.posting
            where tenant_id = :tenant_id and scope_id = :scope_id and term = asked.term
              and owner_kind = owner.owner_kind and owner_id = owner.owner_id limit 1) p
""")

TURN_LAYOUT = (
    ("owner_id", "S16"), ("conversation_id", "S16"), ("seq", ">i8"), ("at", ">f8"), ("terms", ">i4"), ("said", ">i4"),
    ("asks_only", ">i4"), ("ends_asking", ">i4"), ("tells_time", ">i4"),
)  # fmt: skip
"""In order of conversation and seq. `terms` is -1 while a turn is not indexed, the others are 1 for yes.

`said` tells whether one of the speakers asked for did; the last three are only known of what is indexed.
"""
# `limit 1` keeps the planner from reading a whole table for a join: each row is looked up by its key.
_FRESH = """
    fresh as (
        select t.turn_id, t.conversation_id, t.seq, t.occurred_at, t.speaker, t.content
          from memoryos.conversation c
         cross join lateral (
               select * from memoryos.turn t
                where t.tenant_id = :tenant_id and t.conversation_id = c.conversation_id
                  and t.seq > c.indexed_through
                order by seq desc limit :tail_limit) t
         where c.tenant_id = :tenant_id and c.scope_id = :scope_id and c.indexed_through < c.next_seq - 1
           and t.kind = 'normal' and not IS_MARKED
           and (select true from memoryos.posting_length
                 where tenant_id = :tenant_id and conversation_id = t.conversation_id and seq = t.seq
                   and owner_kind = 'turn' limit 1) is null)
""".replace("IS_MARKED", IS_MARKED)
_RECORDS = """
    select string_agg(uuid_send(turn_id) || uuid_send(conversation_id) || int8send(seq)
                      || float8send(cast(extract(epoch from at) as double precision)) || int4send(terms)
                      || int4send(cast(speaker = any(cast(:actor_names as text[])) as integer))
                      || int4send(cast(asks_only as integer)) || int4send(cast(ends_asking as integer))
                      || int4send(cast(tells_time as integer)), '') as records,
           array_agg(content) filter (where terms < 0) as texts
      from (select * from (
                select l.owner_id as turn_id, l.conversation_id, l.seq, l.at, l.terms, l.speaker, l.asks_only,
                       l.ends_asking, l.tells_time, cast(null as text) as content
                  from INDEXED
                union all
                select turn_id, conversation_id, seq, occurred_at, -1, speaker, false, false, false, content
                  from fresh) every
             order by conversation_id, seq) chosen
"""
WHOLE_SCOPE = text(
    f"with {_FRESH} {_RECORDS}".replace(
        "INDEXED",
        """memoryos.posting_length l
                 where l.tenant_id = :tenant_id and l.scope_id = :scope_id and l.owner_kind = 'turn'""",
    )
)
TURNS = text(
    f"""
    with {_FRESH},
    dated as (
        select turn.conversation_id, turn.seq
          from unnest(cast(:starts as timestamptz[]), cast(:ends as timestamptz[])) as span(starts_at, ends_at)
         cross join lateral (
               select conversation_id, seq from memoryos.turn t
                where t.tenant_id = :tenant_id and t.scope_id = :scope_id
                  and t.occurred_at >= span.starts_at and t.occurred_at < span.ends_at
                order by occurred_at desc limit :dated_limit) turn),
    found as (
        select l.conversation_id, l.seq from unnest(cast(:turn_ids as uuid[])) asked(turn_id)
         cross join lateral (
               select conversation_id, seq from memoryos.posting_length
                where tenant_id = :tenant_id and scope_id = :scope_id and owner_kind = 'turn'
                  and owner_id = asked.turn_id limit 1) l),
    wanted as (
        select conversation_id, seq + step as seq from found cross join generate_series(-1, 1) step
        union
        select conversation_id, seq from dated)
    {_RECORDS}
    """.replace(  # noqa: S608 - joined from constants
        "INDEXED",
        """wanted w
                 cross join lateral (
                       select * from memoryos.posting_length
                        where tenant_id = :tenant_id and conversation_id = w.conversation_id and seq = w.seq
                          and owner_kind = 'turn' and scope_id = :scope_id limit 1) l""",
    )
)

KNOWLEDGE_LAYOUT = (
    ("owner_id", "S16"), ("w0", ">f8"), ("strength_days", ">f8"), ("reinforced_at", ">f8"), ("at", ">f8"),
    ("has_event", ">i4"),
)  # fmt: skip
PAGE_LAYOUT = (
    ("owner_id", "S16"), ("conversation_id", "S16"), ("first_seq", ">i8"), ("last_seq", ">i8"), ("first_at", ">f8"),
    ("last_at", ">f8"), ("heat", ">f8"), ("heat_at", ">f8"), ("ticks", ">i8"),
)  # fmt: skip
SOURCE_LAYOUT = (("owner_id", "S16"), ("conversation_id", "S16"), ("seq", ">i8"))
"""Which turns knowledge cites."""
OTHERS = text("""
    with found as (
        select knowledge_id, lineage_id from memoryos.knowledge
         where tenant_id = :tenant_id and knowledge_id = any(cast(:knowledge_ids as uuid[]))),
    wanted as (
        select knowledge_id from found
        union
        select k.knowledge_id from found
          join memoryos.knowledge k on k.tenant_id = :tenant_id and k.lineage_id = found.lineage_id
         where :include_history),
    known as (
        select k.knowledge_id, k.w0, k.strength_days, k.last_reinforced_at, k.event_at, k.turn_at, k.actor, k.content
          from wanted w
          join memoryos.knowledge k on k.tenant_id = :tenant_id and k.knowledge_id = w.knowledge_id
         where k.scope_id = :scope_id
           and (k.status = 'active' or (:include_history and k.status in ('superseded', 'closed')))
         order by k.knowledge_id)
    select knowledge.records as knowledge, knowledge.actors, knowledge.texts, sources.records as sources,
           pages.records as pages
      from (select string_agg(uuid_send(knowledge_id) || float8send(w0) || float8send(strength_days)
                              || float8send(cast(extract(epoch from last_reinforced_at) as double precision))
                              || float8send(cast(extract(epoch from coalesce(event_at, turn_at)) as double precision))
                              || int4send(cast(event_at is not null as integer)), '') as records,
                   array_agg(actor) as actors, array_agg(case when :with_texts then content end) as texts
              from known) knowledge,
           (select string_agg(uuid_send(s.knowledge_id) || uuid_send(s.conversation_id) || int8send(s.seq), ''
                              order by s.knowledge_id, s.conversation_id, s.seq) as records
              from known join memoryos.knowledge_source s
                on s.tenant_id = :tenant_id and s.knowledge_id = known.knowledge_id) sources,
           (select string_agg(uuid_send(p.page_id) || uuid_send(p.conversation_id) || int8send(p.first_seq)
                              || int8send(p.last_seq)
                              || float8send(cast(extract(epoch from p.first_turn_at) as double precision))
                              || float8send(cast(extract(epoch from p.last_turn_at) as double precision))
                              || float8send(p.heat)
                              || float8send(cast(extract(epoch from p.heat_at) as double precision))
                              || int8send(s.heat_ticks - p.heat_tick), '') as records
              from memoryos.page p
              join memoryos.scope s on s.tenant_id = :tenant_id and s.scope_id = :scope_id
             where p.tenant_id = :tenant_id and p.scope_id = :scope_id
               and p.page_id = any(cast(:page_ids as uuid[])) and p.tier = 'warm' and p.summary is not null) pages
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
    """What has to be known before a question can be read: the time, who speaks (name, role), the vector space.

    `has_hnsw` tells whether the space has an approximate index.
    """

    now: datetime
    speakers: tuple[tuple[str, str], ...]
    space_id: int | None
    has_hnsw: bool = False


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Per owner kind: how many owners are indexed and their terms in all; per kind and term: owners that have it."""

    owners: dict[str, int]
    terms: dict[str, int]
    frequency: dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which turns are read as candidates: these (an array literal) and their neighbours, the newest of each span.

    Without `turn_ids` every turn of the scope. What is not indexed comes in any case. `actor_names` are the speakers
    that a question names.
    """

    turn_ids: str | None
    spans: Sequence[tuple[datetime, datetime]] = ()
    actor_names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PackedTurns:
    """Records of TURN_LAYOUT, and in the same order the texts of those that are not indexed."""

    records: bytes
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class PackedOthers:
    """Records of KNOWLEDGE_LAYOUT (with actor and text beside each), SOURCE_LAYOUT and PAGE_LAYOUT."""

    knowledge: bytes = b""
    actors: Sequence[str] = ()
    texts: Sequence[str | None] = ()
    sources: bytes = b""
    pages: bytes = b""


def read_frame(connection: Connection, key: ScopeKey, embedder: SpaceOwner) -> Frame:
    """Return the time, the speakers of the scope (64 at most) and the embedder's vector space, if it has any vector."""
    space = {name: getattr(embedder, name) for name in ("model", "revision", "dimensions", "token_cap")}
    row = connection.execute(FRAME, key.bind(speaker_limit=SPEAKER_LIMIT, **space)).one()
    return Frame(row.now, tuple((name, role) for name, role in row.speakers), row.space_id, bool(row.has_hnsw))


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


def read_postings(connection: Connection, key: ScopeKey, *, kinds: Sequence[str], terms: Sequence[str]) -> bytes:
    """Return the postings of these terms in the whole scope."""
    return connection.execute(POSTINGS, key.bind(kinds=list(kinds), terms=list(terms))).scalar() or b""


def read_postings_of(
    connection: Connection, key: ScopeKey, *, kinds: Sequence[str], terms: Sequence[str], owners: tuple[str, str]
) -> bytes:
    """Return the postings of these terms that the given owners have (array literals of ids and of their kinds)."""
    values = key.bind(kinds=list(kinds), terms=list(terms), owner_ids=owners[0], owner_kinds=owners[1])
    return connection.execute(POSTINGS_OF, values).scalar() or b""


def read_turns(connection: Connection, key: ScopeKey, wanted: Wanted) -> PackedTurns:
    """Return the turns wanted as candidates, those that may be recalled."""
    values = key.bind(tail_limit=TAIL_LIMIT, actor_names=list(wanted.actor_names))
    if wanted.turn_ids is None:
        records, texts = connection.execute(WHOLE_SCOPE, values).one()
        return PackedTurns(records or b"", texts or ())
    starts, ends = [start for start, _ in wanted.spans], [end for _, end in wanted.spans]
    values |= {"turn_ids": wanted.turn_ids, "starts": starts, "ends": ends, "dated_limit": DATED_LIMIT}
    records, texts = connection.execute(TURNS, values).one()
    return PackedTurns(records or b"", texts or ())


def read_others(
    connection: Connection, key: ScopeKey, *, knowledge_ids: str, page_ids: str, include_history: bool, with_texts: bool
) -> PackedOthers:
    """Return live knowledge (array literals of ids), with `include_history` retired versions too, and warm pages."""
    values = key.bind(
        knowledge_ids=knowledge_ids, page_ids=page_ids, include_history=include_history, with_texts=with_texts
    )
    knowledge, actors, texts, sources, pages = connection.execute(OTHERS, values).one()
    return PackedOthers(knowledge or b"", actors or (), texts or (), sources or b"", pages or b"")
