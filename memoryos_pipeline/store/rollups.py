"""Rollups: the summaries of days and of the whole of a memory, written anew when a page of theirs comes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.rollups import DAY_CHARACTERS, RULE, WHOLE, WHOLE_CHARACTERS, Told, roll_up

# A day is the one of whoever spoke: by the offset the page's first turn was said in.
_DAY = "to_char((t.occurred_at + t.utc_offset_minutes * interval '1 minute') at time zone 'utc', 'YYYY-MM-DD')"
_FIRST_TURN = """
    join memoryos.turn t on t.tenant_id = p.tenant_id and t.conversation_id = p.conversation_id and t.seq = p.first_seq
"""
_FIND_DAYS = """
    select distinct A_DAY from memoryos.page p WITH_FIRST_TURN
     where p.tenant_id = :tenant_id and p.page_id = any(cast(:page_ids as uuid[])) order by 1
"""
_LOAD_PAGES = """
    select A_DAY as day, p.page_id, p.summary, p.keywords, p.lang from memoryos.page p WITH_FIRST_TURN
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.summarized_at is not null
       and not exists (select from memoryos.turn_left l
                        where l.tenant_id = p.tenant_id and l.conversation_id = p.conversation_id
                          and l.seq between p.first_seq and p.last_seq)
       and t.occurred_at >= cast(:first as timestamptz) - interval '1 day'
       and t.occurred_at < cast(:last as timestamptz) + interval '2 days' and A_DAY = any(cast(:days as text[]))
     order by p.first_turn_at, p.conversation_id, p.first_seq
"""
FIND_DAYS, LOAD_PAGES = (
    text(query.replace("A_DAY", _DAY).replace("WITH_FIRST_TURN", _FIRST_TURN)) for query in (_FIND_DAYS, _LOAD_PAGES)
)
LOAD_DAYS = text("""
    select summary, keywords, lang, page_ids from memoryos.rollup
     where tenant_id = :tenant_id and scope_id = :scope_id and period <> :whole order by period
""")
# A page that sums up a turn which has left recall is told of no more.
FIND_LEFT = text("""
    select distinct p.page_id from memoryos.rollup r
      join memoryos.page p on p.tenant_id = r.tenant_id and p.page_id = any(r.page_ids)
      join memoryos.turn_left l on l.tenant_id = p.tenant_id and l.conversation_id = p.conversation_id
                               and l.seq between p.first_seq and p.last_seq
     where r.tenant_id = :tenant_id and r.scope_id = :scope_id and r.period <> :whole
     order by p.page_id
""")
DROP = text("""
    delete from memoryos.rollup
     where tenant_id = :tenant_id and scope_id = :scope_id and period = any(cast(:periods as text[]))
""")
READ_NEWEST = text("""
    select period, summary, page_ids,
           min(period) filter (where period <> :whole) over () as first_day,
           max(period) filter (where period <> :whole) over () as last_day
      from memoryos.rollup where tenant_id = :tenant_id and scope_id = :scope_id
     order by period = :whole desc, period desc limit :limit
""")
SAVE = text("""
    insert into memoryos.rollup (tenant_id, scope_id, period, summary, keywords, lang, page_count, page_ids, model)
    values (:tenant_id, :scope_id, :period, :summary, :keywords, :lang, cardinality(cast(:page_ids as uuid[])),
            cast(:page_ids as uuid[]), :model)
    on conflict (tenant_id, scope_id, period) do update
       set summary = excluded.summary, keywords = excluded.keywords, lang = excluded.lang,
           page_count = excluded.page_count, page_ids = excluded.page_ids, model = excluded.model,
           refreshed_at = memoryos.now(), version = rollup.version + 1
""")


@dataclass(frozen=True, slots=True)
class Rollup:
    """What a day was about, or the whole (`period` is `all`): its pages, and the days it is made of."""

    period: str
    summary: str
    page_ids: tuple[UUID, ...]
    first_day: date
    last_day: date


def refresh_rollups(connection: Connection, tenant_id: UUID, scope_id: UUID, *, page_ids: Iterable[UUID]) -> list[str]:
    """Write the days these pages lie in anew, and the whole; return the days. The caller holds the scope.

    A day of which nothing is left to tell goes.
    """
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    days = list(connection.execute(FIND_DAYS, {**key, "page_ids": list(page_ids)}).scalars())
    if not days:
        return []
    told: dict[str, list[Told]] = {}
    pages: dict[str, list[UUID]] = {}
    for row in connection.execute(LOAD_PAGES, {**key, "days": days, "first": days[0], "last": days[-1]}):
        told.setdefault(row.day, []).append(Told(row.summary or "", tuple(row.keywords), row.lang))
        pages.setdefault(row.day, []).append(row.page_id)
    for day, summaries in told.items():
        _save(connection, key, day, roll_up(summaries, max_characters=DAY_CHARACTERS), pages[day])
    empty = [day for day in days if day not in told]
    if empty:
        connection.execute(DROP, {**key, "periods": empty})
    whole = connection.execute(LOAD_DAYS, {**key, "whole": WHOLE}).all()
    if not whole:
        connection.execute(DROP, {**key, "periods": [WHOLE]})
        return days
    summaries = [Told(row.summary, tuple(row.keywords), row.lang) for row in whole]
    every_page = [page_id for row in whole for page_id in row.page_ids]
    _save(connection, key, WHOLE, roll_up(summaries, max_characters=WHOLE_CHARACTERS), every_page)
    return days


def drop_left(connection: Connection, tenant_id: UUID, scope_id: UUID) -> list[str]:
    """Write the days anew that tell of a page whose turns have left recall; return them. The caller holds the scope."""
    left = connection.execute(FIND_LEFT, {"tenant_id": tenant_id, "scope_id": scope_id, "whole": WHOLE})
    pages = list(left.scalars())
    return refresh_rollups(connection, tenant_id, scope_id, page_ids=pages) if pages else []


def read_newest(connection: Connection, tenant_id: UUID, scope_id: UUID, *, limit: int) -> list[Rollup]:
    """Return the summary of the whole and those of the last days, the whole first and then the newest day."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "whole": WHOLE, "limit": limit}
    return [
        Rollup(
            row.period,
            row.summary,
            tuple(row.page_ids),
            date.fromisoformat(row.first_day if row.period == WHOLE else row.period),
            date.fromisoformat(row.last_day if row.period == WHOLE else row.period),
        )
        for row in connection.execute(READ_NEWEST, values)
        if row.first_day is not None
    ]


def _save(connection: Connection, key: dict[str, UUID], period: str, told: Told, page_ids: list[UUID]) -> None:
    values = {"summary": told.text, "keywords": list(told.keywords), "lang": told.lang, "model": RULE}
    connection.execute(SAVE, {**key, **values, "period": period, "page_ids": page_ids})
