"""Pages: sealing them from turns, reading their text, keeping their summary, knowing which are indexed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.domain.chains import ChainLink, run_metas
from memoryos_pipeline.domain.ids import page_id
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.paging import PageSpan, TurnMark
from memoryos_pipeline.domain.turns import Turn

# "no key update" everywhere: recording turns and events only refers to the row and must not wait for us.
LOCK_CONVERSATION = text("""
    select conversation_id, scope_id, next_seq, sealed_through, last_activity_at, closed_at
      from memoryos.conversation where tenant_id = :tenant_id and conversation_id = :conversation_id
       for no key update
""")
LOAD_UNSEALED = text("""
    select seq, occurred_at, lang, role,
           case when :counts_tokens then memoryos.estimate_tokens(content) else 0 end as tokens
      from memoryos.turn
     where tenant_id = :tenant_id and conversation_id = :conversation_id and seq > :sealed_through
     order by seq limit :limit
""")
INSERT_PAGES = text("""
    insert into memoryos.page (tenant_id, scope_id, conversation_id, page_id, first_seq, last_seq,
                               first_turn_at, last_turn_at, lang)
    select :tenant_id, :scope_id, :conversation_id, page_id, first_seq, last_seq, first_turn_at, last_turn_at, lang
      from unnest(cast(:page_ids as uuid[]), cast(:firsts as bigint[]), cast(:lasts as bigint[]),
                  cast(:first_moments as timestamptz[]), cast(:last_moments as timestamptz[]), cast(:langs as text[]))
           as sealed(page_id, first_seq, last_seq, first_turn_at, last_turn_at, lang)
     order by first_seq
""")
SET_SEALED_THROUGH = text("""
    update memoryos.conversation set sealed_through = :sealed_through
     where tenant_id = :tenant_id and conversation_id = :conversation_id
""")
FIND_PAGE = text("""
    select page_id, scope_id, conversation_id, first_seq, last_seq, tier, lang, summary, keywords, chain_id,
           meta_summary, version
      from memoryos.page where tenant_id = :tenant_id and page_id = :page_id
""")
LOCK_PAGE = text(FIND_PAGE.text + " for no key update")
# Whoever holds several pages without their conversation takes them in this one order.
LOCK_PAGES = text("""
    select page_id from memoryos.page where tenant_id = :tenant_id and page_id = any(cast(:page_ids as uuid[]))
     order by conversation_id, first_seq for no key update
""")
FIND_PREVIOUS_PAGE = text("""
    select page_id, first_seq, last_seq from memoryos.page
     where tenant_id = :tenant_id and conversation_id = :conversation_id and first_seq < :first_seq
     order by first_seq desc limit 1
""")
LOAD_TURNS = text("""
    select turn_id, conversation_id, scope_id, seq, role, speaker, content, lang,
           occurred_at, utc_offset_minutes, recorded_at, kind
      from memoryos.turn
     where tenant_id = :tenant_id and conversation_id = :conversation_id and seq between :first_seq and :last_seq
     order by seq
""")
SAVE_SUMMARY = text("""
    update memoryos.page
       set summary = :summary, keywords = :keywords, topics = :topics, continues = :continues,
           prev_page_id = :prev_page_id, chain_id = :chain_id,
           summary_model = :model, summarized_at = memoryos.now(), version = version + 1
     where tenant_id = :tenant_id and page_id = :page_id
""")
_BEFORE_NEXT_CHAIN = """first_seq < coalesce(
           (select min(first_seq) from memoryos.page
             where tenant_id = :tenant_id and conversation_id = :conversation_id and first_seq > :first_seq
               and continues is not true), 9223372036854775807)"""
LOCK_CHAIN = text(
    """
    select page_id from memoryos.page
     where tenant_id = :tenant_id and conversation_id = :conversation_id and first_seq >= :first_seq
       and BEFORE_NEXT_CHAIN
     order by first_seq for no key update
""".replace("BEFORE_NEXT_CHAIN", _BEFORE_NEXT_CHAIN)
)
# Pages behind that were summarized first wait under a chain of their own until the page before them is known.
_HAND_CHAIN_ON = """
    update memoryos.page set chain_id = :chain_id, version = version + 1
     where tenant_id = :tenant_id and conversation_id = :conversation_id and first_seq > :first_seq
       and BEFORE_NEXT_CHAIN and chain_id is distinct from :chain_id
"""
PASS_CHAIN_ON = text(_HAND_CHAIN_ON.replace("BEFORE_NEXT_CHAIN", _BEFORE_NEXT_CHAIN))
_LOAD_CHAIN = """
    select page_id, summary, continues from memoryos.page
     where tenant_id = :tenant_id and conversation_id = :conversation_id and first_seq >= :first_seq
       and summarized_at is not null and BEFORE_NEXT_CHAIN
     order by first_seq
"""
LOAD_CHAIN = text(_LOAD_CHAIN.replace("BEFORE_NEXT_CHAIN", _BEFORE_NEXT_CHAIN))
SAVE_METAS = text("""
    update memoryos.page p set meta_summary = told.meta_summary
      from unnest(cast(:page_ids as uuid[]), cast(:metas as text[])) as told(page_id, meta_summary)
     where p.tenant_id = :tenant_id and p.page_id = told.page_id and p.meta_summary is distinct from told.meta_summary
""")
MARK_INDEXED = text("""
    update memoryos.page set indexed_at = memoryos.now() where tenant_id = :tenant_id and page_id = :page_id
""")
ADVANCE_INDEXED_THROUGH = text("""
    update memoryos.conversation c
       set indexed_through = coalesce(
           (select min(p.first_seq) - 1 from memoryos.page p
             where p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id
               and p.first_seq > c.indexed_through and p.indexed_at is null), c.sealed_through)
     where c.tenant_id = :tenant_id and c.conversation_id = :conversation_id
""")


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """Where a conversation stands; read under its lock."""

    conversation_id: UUID
    scope_id: UUID
    next_seq: int
    sealed_through: int
    last_activity_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class PageRow:
    """A page as far as the stages need it; `chain_id` and `meta_summary` are None before it is summarized."""

    page_id: UUID
    scope_id: UUID
    conversation_id: UUID
    first_seq: int
    last_seq: int
    tier: str
    lang: str
    summary: str | None
    keywords: tuple[str, ...]
    chain_id: UUID | None
    meta_summary: str | None
    version: int


@dataclass(frozen=True, slots=True)
class PageReading:
    """A page with its turns and with the page before it."""

    page: PageRow
    text: PageText
    previous_page_id: UUID | None


def lock_conversation(connection: Connection, tenant_id: UUID, conversation_id: UUID) -> ConversationRow | None:
    """Lock a conversation against sealing and indexing until the transaction ends; None when it is gone."""
    values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
    row = connection.execute(LOCK_CONVERSATION, values).first()
    return ConversationRow(*row) if row else None


def load_unsealed(
    connection: Connection, tenant_id: UUID, *, conversation: ConversationRow, limit: int, counts_tokens: bool = False
) -> list[TurnMark]:
    """Return the first `limit` turns behind the sealed prefix, in order; their tokens only when asked for."""
    values = {
        "tenant_id": tenant_id,
        "conversation_id": conversation.conversation_id,
        "sealed_through": conversation.sealed_through,
        "limit": limit,
        "counts_tokens": counts_tokens,
    }
    return [TurnMark(*row) for row in connection.execute(LOAD_UNSEALED, values)]


def seal_pages(
    connection: Connection,
    tenant_id: UUID,
    *,
    conversation: ConversationRow,
    spans: Sequence[PageSpan],
    sealed_through: int,
) -> list[UUID]:
    """Store pages under the conversation's lock and move its sealed prefix; return the page ids in order."""
    ids = [page_id(conversation.conversation_id, span.first_seq) for span in spans]
    key = {"tenant_id": tenant_id, "conversation_id": conversation.conversation_id}
    columns = {
        "scope_id": conversation.scope_id,
        "page_ids": ids,
        "firsts": [span.first_seq for span in spans],
        "lasts": [span.last_seq for span in spans],
        "first_moments": [span.first_turn_at for span in spans],
        "last_moments": [span.last_turn_at for span in spans],
        "langs": [span.lang for span in spans],
    }
    connection.execute(INSERT_PAGES, {**key, **columns})
    connection.execute(SET_SEALED_THROUGH, {**key, "sealed_through": sealed_through})
    return ids


def find_page(connection: Connection, tenant_id: UUID, page: UUID) -> PageRow | None:
    """Return a page, or None when there is none (any more)."""
    return _page_row(connection.execute(FIND_PAGE, {"tenant_id": tenant_id, "page_id": page}).first())


def lock_page(connection: Connection, tenant_id: UUID, page: UUID) -> PageRow | None:
    """Return a page, locked until the transaction ends, or None when there is none (any more)."""
    return _page_row(connection.execute(LOCK_PAGE, {"tenant_id": tenant_id, "page_id": page}).first())


def lock_pages(connection: Connection, tenant_id: UUID, pages: Iterable[UUID]) -> None:
    """Lock those of the pages that exist until the transaction ends, in the one order everybody uses."""
    values = {"tenant_id": tenant_id, "page_ids": list(pages)}
    if values["page_ids"]:
        connection.execute(LOCK_PAGES, values)


def read_page(connection: Connection, tenant_id: UUID, page: UUID) -> PageReading | None:
    """Return a page with its turns and those of the page before it; None when it or its turns are gone."""
    found = find_page(connection, tenant_id, page)
    turns = load_turns(connection, tenant_id, found) if found else ()
    if found is None or not turns:
        return None
    values = {"tenant_id": tenant_id, "conversation_id": found.conversation_id, "first_seq": found.first_seq}
    previous = connection.execute(FIND_PREVIOUS_PAGE, values).first()
    if previous is None:
        return PageReading(found, PageText(page, turns), None)
    span = (found.conversation_id, previous.first_seq, previous.last_seq)
    text_read = PageText(page, turns, _load_span(connection, tenant_id, span))
    return PageReading(found, text_read, previous.page_id)


def load_turns(connection: Connection, tenant_id: UUID, page: PageRow) -> tuple[Turn, ...]:
    """Return the turns of a page in order; `occurred_at` carries the offset it was said in."""
    return _load_span(connection, tenant_id, (page.conversation_id, page.first_seq, page.last_seq))


def save_summary(connection: Connection, tenant_id: UUID, *, reading: PageReading, summary: PageSummary) -> bool:
    """Keep a summary and join the page to its chain, under the conversation's lock; False when the page is gone."""
    page = reading.page
    chain_id = _chain_of(connection, tenant_id, reading, continues=summary.continues)
    key = {"tenant_id": tenant_id, "conversation_id": page.conversation_id, "first_seq": page.first_seq}
    values = {
        "tenant_id": tenant_id,
        "page_id": page.page_id,
        "summary": summary.summary,
        "keywords": list(summary.keywords),
        "topics": list(summary.topics),
        "continues": summary.continues,
        "prev_page_id": reading.previous_page_id,
        "chain_id": chain_id,
        "model": summary.model,
    }
    connection.execute(LOCK_CHAIN, key)
    if connection.execute(SAVE_SUMMARY, values).rowcount == 0:
        return False
    connection.execute(PASS_CHAIN_ON, {**key, "chain_id": chain_id})
    _pass_meta_on(connection, key, reading.previous_page_id)
    return True


def _pass_meta_on(connection: Connection, key: dict[str, Any], previous_page_id: UUID | None) -> None:
    """Write the running summaries from one page to the end of its chain, whichever of them came first."""
    tenant_id: UUID = key["tenant_id"]
    previous = find_page(connection, tenant_id, previous_page_id) if previous_page_id else None
    links = [ChainLink(row.page_id, row.summary, row.continues) for row in connection.execute(LOAD_CHAIN, key)]
    metas = dict(run_metas(previous.meta_summary if previous else None, links))
    values = {"tenant_id": tenant_id, "page_ids": list(metas), "metas": list(metas.values())}
    connection.execute(SAVE_METAS, values)


def mark_indexed(connection: Connection, tenant_id: UUID, page: PageRow) -> None:
    """Note that a page's turns are indexed, and how far its conversation is without a gap; under its lock."""
    connection.execute(MARK_INDEXED, {"tenant_id": tenant_id, "page_id": page.page_id})
    key = {"tenant_id": tenant_id, "conversation_id": page.conversation_id}
    connection.execute(ADVANCE_INDEXED_THROUGH, key)


def _chain_of(connection: Connection, tenant_id: UUID, reading: PageReading, *, continues: bool) -> UUID:
    previous = find_page(connection, tenant_id, reading.previous_page_id) if reading.previous_page_id else None
    if previous is None or not continues:
        return reading.page.page_id
    return previous.chain_id or previous.page_id


def _load_span(connection: Connection, tenant_id: UUID, span: tuple[UUID, int, int]) -> tuple[Turn, ...]:
    conversation_id, first_seq, last_seq = span
    values = {
        "tenant_id": tenant_id,
        "conversation_id": conversation_id,
        "first_seq": first_seq,
        "last_seq": last_seq,
    }
    return tuple(_turn(row) for row in connection.execute(LOAD_TURNS, values))


def _turn(row: Row[tuple[object, ...]]) -> Turn:
    from_utc = timezone(timedelta(minutes=row.utc_offset_minutes))
    return Turn(
        turn_id=row.turn_id,
        conversation_id=row.conversation_id,
        scope_id=row.scope_id,
        seq=row.seq,
        role=row.role,
        speaker=row.speaker,
        content=row.content,
        lang=row.lang,
        occurred_at=row.occurred_at.astimezone(from_utc),
        recorded_at=row.recorded_at,
        kind=row.kind,
    )


def _page_row(row: Row[tuple[object, ...]] | None) -> PageRow | None:
    if row is None:
        return None
    values = {**row._mapping, "keywords": tuple(row.keywords)}
    return PageRow(**values)
