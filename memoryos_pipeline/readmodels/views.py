"""Typed reads of memory_v1: listings by keyset, one thing with where it came from, the pipeline, the feed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    FromClause,
    Select,
    TextClause,
    and_,
    any_,
    bindparam,
    column,
    func,
    select,
    table,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlalchemy.dialects.postgresql import UUID as UUID_TYPE
from sqlalchemy.types import BIGINT, TEXT, TypeEngine

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.readmodels.cursors import (
    Parser,
    bigint,
    identifier,
    moment,
    read_cursor,
    words,
    write_cursor,
)

MAX_ROWS = 500
INTERNAL = frozenset({"tenant_id", "scope_id", "conversation_key"})
"""Columns that join views inside SQL and mean nothing outside."""

Row = dict[str, Any]

TYPES: dict[Parser, TypeEngine[Any]] = {
    bigint: BIGINT(),
    moment: TIMESTAMP(timezone=True),
    identifier: UUID_TYPE(),
    words: TEXT(),
}

SCOPES = text("""
    select scope_id from memoryos.scope
     where tenant_id = :tenant_id and user_id = :user_id
       and agent_id = any(coalesce(cast(:agent_ids as text[]), array[agent_id]))
""")
TURN = text("select * from memory_v1.turns where tenant_id = :tenant_id and turn_id = :id")
CITED_BY = text("""
    select h.knowledge_id, h.version, h.status, h.kind, h.content
      from memoryos.knowledge_source o
      join memory_v1.knowledge_history h on h.tenant_id = o.tenant_id and h.knowledge_id = o.knowledge_id
     where o.tenant_id = :tenant_id and o.conversation_id = :conversation_key and o.seq = :seq
     order by h.recorded_at, h.knowledge_id
""")
KNOWLEDGE = text("select * from memory_v1.knowledge_history where tenant_id = :tenant_id and knowledge_id = :id")
SOURCES = text("""
    select t.* from memoryos.knowledge_source o
      join memory_v1.turns t on t.tenant_id = o.tenant_id and t.conversation_key = o.conversation_id and t.seq = o.seq
     where o.tenant_id = :tenant_id and o.knowledge_id = :id order by t.occurred_at, t.conversation_key, t.seq
""")
VERSIONS = text("""
    select * from memory_v1.knowledge_history where tenant_id = :tenant_id and lineage_id = :lineage_id order by version
""")
NOTES = text("""
    select version, context, keywords, tags, cause_knowledge_id, created_at from memoryos.knowledge_note
     where tenant_id = :tenant_id and knowledge_id = :id order by version
""")
LINKS = text("""
    select * from memory_v1.links where tenant_id = :tenant_id and source_id = :id
    union all
    select * from memory_v1.links where tenant_id = :tenant_id and target_id = :id
     order by created_at, source_id, target_id, type
""")
VERDICTS = text("""
    select decision, new_knowledge_id, old_knowledge_id, evidence, decided_by, decided_at, undone_at
      from memoryos.verdict
     where tenant_id = :tenant_id and scope_id = :scope_id and (new_knowledge_id = :id or old_knowledge_id = :id)
     order by decided_at, verdict_id
""")
LAG = text("select * from memory_v1.pipeline_lag where tenant_id = :tenant_id order by kind")
TIERS = text("""
    with scopes as materialized (
        select scope_id from memoryos.scope
         where tenant_id = :tenant_id and user_id = coalesce(cast(:user_id as text), user_id)
    ), counted(place, tier, what, count) as (
        select 1, 'hot', 'turns in the verbatim buffer', coalesce(sum(c.next_seq - 1 - c.sealed_through), 0)
          from memoryos.conversation c join scopes using (scope_id) where c.tenant_id = :tenant_id
        union all
        select 2, 'hot', 'pinned pages', count(*) from memoryos.page p join scopes using (scope_id)
         where p.tenant_id = :tenant_id and p.pinned_at is not null
        union all
        select 3, 'warm', 'pages', count(*) from memoryos.page p join scopes using (scope_id)
         where p.tenant_id = :tenant_id and p.tier = 'warm'
        union all
        select 4, 'warm', 'segments', count(*) from memoryos.segment g join scopes using (scope_id)
         where g.tenant_id = :tenant_id
        union all
        select 5, 'archived', 'pages', count(*) from memoryos.page p join scopes using (scope_id)
         where p.tenant_id = :tenant_id and p.tier = 'archived'
        union all
        select 6, 'cold', 'statements held true', count(*) from memoryos.knowledge k join scopes using (scope_id)
         where k.tenant_id = :tenant_id and k.status = 'active'
        union all
        select 7, 'cold', 'statements superseded or closed', count(*) from memoryos.knowledge k
          join scopes using (scope_id) where k.tenant_id = :tenant_id and k.status in ('superseded', 'closed')
        union all
        select 8, 'forgotten', 'statements that can be restored', count(*) from memoryos.knowledge k
          join scopes using (scope_id) where k.tenant_id = :tenant_id and k.status = 'forgotten'
        union all
        select 9, 'cold', 'links', count(*) from memoryos.knowledge_link l join scopes using (scope_id)
         where l.tenant_id = :tenant_id
        union all
        select 10, 'cold', 'traits of the profile', count(*) from memory_v1.profile t join scopes using (scope_id)
         where t.tenant_id = :tenant_id
    )
    select tier, what, cast(count as bigint) as count from counted order by place
""")
POSITION = text("select cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint)")
EVENTS = text("""
    select * from memory_v1.events
     where tenant_id = :tenant_id and (position, event_id) > (cast(:position as xid8), :event_id)
     order by position, event_id limit :limit
""")
FEED_START = (0, 0)


@dataclass(frozen=True, slots=True)
class Listing:
    """A view that can be read row by row: its order is total and never changes for a row that exists.

    `past` is the function that shows it as of a moment, `past_equal` what its rows must equal to be in the view.
    """

    view: str
    order: Mapping[str, Parser]
    past: str | None = None
    past_equal: Mapping[str, str] = field(default_factory=dict)


_STATEMENT_ORDER: dict[str, Parser] = {"scope_id": identifier, "turn_at": moment, "knowledge_id": identifier}

LISTINGS = {
    listing.view: listing
    for listing in (
        Listing(
            "turns",
            {"scope_id": identifier, "occurred_at": moment, "seq": bigint, "turn_id": identifier},
            past="turns_as_of",
        ),
        Listing("pages", {"scope_id": identifier, "last_turn_at": moment, "page_id": identifier}, past="pages_as_of"),
        Listing("segments", {"scope_id": identifier, "created_at": moment, "segment_id": identifier}),
        Listing("knowledge", _STATEMENT_ORDER, past="knowledge_as_of", past_equal={"status": "active"}),
        Listing("knowledge_history", _STATEMENT_ORDER, past="knowledge_as_of"),
        Listing("links", {"scope_id": identifier, "source_id": identifier, "target_id": identifier, "type": words}),
        Listing("profile", {"scope_id": identifier, "actor": words, "dimension": words}),
        Listing("rollups", {"scope_id": identifier, "period": words}),
        Listing("conversations", {"scope_id": identifier, "created_at": moment, "conversation_key": identifier}),
    )
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of a listing: of one tenant, perhaps of one user and agent, and where columns equal a value."""

    tenant_id: UUID
    user_id: str | None = None
    agent_id: str | None = None
    equal: Mapping[str, str] = field(default_factory=dict)
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows, and the cursor that goes on behind them: None when there are no more."""

    rows: list[Row]
    cursor: str | None


def list_rows(
    connection: Connection,
    listing: Listing,
    selection: Selection,
    *,
    cursor: str | None = None,
    limit: int = 100,
) -> Slice:
    """Return up to `limit` rows (1 to 500) in the listing's order. Raises InvalidCursorError."""
    statement = _statement(listing, selection, _scopes(connection, selection)).limit(min(limit, MAX_ROWS) + 1)
    if cursor is not None:
        statement = statement.where(_behind(listing, cursor))
    rows = [dict(row) for row in connection.execute(statement).mappings()]
    following = write_cursor(listing.view, rows[limit - 1], list(listing.order)) if len(rows) > limit else None
    return Slice([_outside(row) for row in rows[:limit]], following)


def read_turn(connection: Connection, tenant_id: UUID, turn_id: UUID) -> Row:
    """Return a turn, and under `knowledge` whatever cites it. Raises NotFoundError."""
    row = _one(connection, TURN, tenant_id, turn_id)
    values = {"tenant_id": tenant_id, "conversation_key": row["conversation_key"], "seq": row["seq"]}
    return {**_outside(row), "knowledge": _many(connection, CITED_BY, values)}


def read_knowledge(connection: Connection, tenant_id: UUID, knowledge_id: UUID) -> Row:
    """Return one version of a statement, with all that explains it. Raises NotFoundError.

    `sources` are its turns; `versions`, `notes`, `links` and `verdicts` are what became of it.
    """
    row = _one(connection, KNOWLEDGE, tenant_id, knowledge_id)
    values = {
        "tenant_id": tenant_id,
        "id": knowledge_id,
        "lineage_id": row["lineage_id"],
        "scope_id": row["scope_id"],
    }
    parts = {"sources": SOURCES, "versions": VERSIONS, "notes": NOTES, "links": LINKS, "verdicts": VERDICTS}
    return {**_outside(row), **{name: _many(connection, query, values) for name, query in parts.items()}}


def read_pipeline(connection: Connection, tenant_id: UUID) -> Row:
    """Return how far the pipeline is: `owed` counts work that is due, leased or waiting for its next try.

    `position` is where the change feed is safe to read up to: all transactions below it are over.
    """
    rows = _many(connection, LAG, {"tenant_id": tenant_id})
    totals = {state: sum(row[state] for row in rows) for state in ("ready", "waiting", "leased", "dead")}
    owed = totals["ready"] + totals["waiting"] + totals["leased"]
    by_kind = {row.pop("kind"): row for row in rows}
    position = connection.execute(POSITION).scalar_one()
    return {"owed": owed, **totals, "by_kind": by_kind, "position": position, "drained": owed == 0}


def read_tiers(connection: Connection, tenant_id: UUID, *, user_id: str | None = None) -> list[Row]:
    """Return how much lies in which tier: rows of `tier`, `what` and `count`, from hot to cold."""
    return _many(connection, TIERS, {"tenant_id": tenant_id, "user_id": user_id})


def read_events(connection: Connection, tenant_id: UUID, *, after: str | None = None, limit: int = 100) -> Slice:
    """Return the next events of the feed. Raises InvalidCursorError.

    Its cursor is never None: ask again with it later.
    """
    position, event_id = read_cursor("events", after, (bigint, bigint)) if after else FEED_START
    values = {
        "tenant_id": tenant_id,
        "position": str(max(position, 0)),
        "event_id": event_id,
        "limit": min(limit, MAX_ROWS),
    }
    rows = [{**row, "position": int(row["position"])} for row in _many(connection, EVENTS, values)]
    last = rows[-1] if rows else {"position": position, "event_id": event_id}
    return Slice(rows, write_cursor("events", last, ("position", "event_id")))


def _scopes(connection: Connection, selection: Selection) -> list[UUID] | None:
    if selection.user_id is None:
        return None
    agents = None if selection.agent_id is None else [selection.agent_id]
    values = {"tenant_id": selection.tenant_id, "user_id": selection.user_id, "agent_ids": agents}
    return list(connection.execute(SCOPES, values).scalars())


def _statement(listing: Listing, selection: Selection, scopes: list[UUID] | None) -> Select[Any]:
    equal = {**selection.equal, **(listing.past_equal if selection.as_of else {})}
    if scopes is None and selection.agent_id is not None:
        equal["agent_id"] = selection.agent_id
    chosen = [column("tenant_id", UUID_TYPE()) == selection.tenant_id]
    chosen += [column(name, TEXT()) == value for name, value in equal.items()]
    if scopes is not None:
        wanted = bindparam("scopes", scopes, type_=ARRAY(UUID_TYPE()))
        chosen.append(column("scope_id", UUID_TYPE()) == any_(wanted))
    return (
        select(text("*"))
        .select_from(_source(listing, selection))
        .where(and_(*chosen))
        .order_by(*(column(name) for name in listing.order))
    )


def _source(listing: Listing, selection: Selection) -> FromClause:
    if selection.as_of is None or listing.past is None:
        return table(listing.view, schema="memory_v1")
    moment_then = bindparam("as_of", selection.as_of, type_=TIMESTAMP(timezone=True))
    then: FromClause = getattr(func.memory_v1, listing.past)(moment_then).table_valued(joins_implicitly=True)
    return then


def _behind(listing: Listing, cursor: str) -> Any:
    values = read_cursor(listing.view, cursor, list(listing.order.values()))
    kinds = [TYPES[parser] for parser in listing.order.values()]
    columns = [column(name, kind) for name, kind in zip(listing.order, kinds, strict=True)]
    return tuple_(*columns) > tuple_(
        *(bindparam(None, value, type_=kind) for value, kind in zip(values, kinds, strict=True))
    )


def _one(connection: Connection, query: TextClause, tenant_id: UUID, wanted: UUID) -> Row:
    row = connection.execute(query, {"tenant_id": tenant_id, "id": wanted}).mappings().first()
    if row is None:
        raise NotFoundError
    return dict(row)


def _many(connection: Connection, query: TextClause, values: dict[str, Any]) -> list[Row]:
    return [_outside(dict(row)) for row in connection.execute(query, values).mappings()]


def _outside(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in INTERNAL}
