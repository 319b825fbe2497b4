"""Heat: accesses that wait to be applied, the heat of pages, reinforced knowledge, pages that are cold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

LOAD_ACCESSES = text("""
    select retrieval_id, owner_kind, owner_id, cause, at from memoryos.access_event
     where tenant_id = :tenant_id and scope_id = :scope_id and applied_at is null
     order by at, retrieval_id, owner_kind, owner_id, cause limit :limit
""")
MARK_APPLIED = text("""
    update memoryos.access_event a set applied_at = memoryos.now()
      from unnest(cast(:retrievals as uuid[]), cast(:kinds as text[]), cast(:owners as uuid[]), cast(:causes as text[]))
           as given(retrieval_id, owner_kind, owner_id, cause)
     where a.tenant_id = :tenant_id and a.retrieval_id = given.retrieval_id and a.owner_kind = given.owner_kind
       and a.owner_id = given.owner_id and a.cause = given.cause and a.applied_at is null
""")
FIND_PAGES_OF_TURNS = text("""
    select t.turn_id, p.page_id from memoryos.turn t
      cross join lateral (
           select page_id, last_seq from memoryos.page
            where tenant_id = t.tenant_id and conversation_id = t.conversation_id and first_seq <= t.seq
            order by first_seq desc limit 1) p
     where t.tenant_id = :tenant_id and t.turn_id = any(cast(:turn_ids as uuid[])) and t.seq <= p.last_seq
""")
# Conversations before their pages, like everybody who locks both; pages in the order of store.pages.lock_pages.
TOUCHED = """
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.tier = 'warm'
       and (p.cools_at <= memoryos.now() or p.pinned_at is not null or p.page_id = any(cast(:page_ids as uuid[])))
"""
_LOCK_TOUCHED_CONVERSATIONS = """
    select conversation_id from memoryos.conversation
     where tenant_id = :tenant_id
       and conversation_id in (select p.conversation_id from memoryos.page p TOUCHED)
     order by conversation_id for no key update
"""
LOCK_TOUCHED_CONVERSATIONS = text(_LOCK_TOUCHED_CONVERSATIONS.replace("TOUCHED", TOUCHED))
_LOCK_TOUCHED = """
    select p.page_id from memoryos.page p TOUCHED order by p.conversation_id, p.first_seq for no key update
"""
LOCK_TOUCHED = text(_LOCK_TOUCHED.replace("TOUCHED", TOUCHED))
LOAD_WARM = text("""
    select page_id, conversation_id, sealed_at, heat, heat_at, cools_at, pinned_at is not null,
           extract_ordinal is not null, extracted_at is not null, heat_tick, cools_at_tick, visits
      from memoryos.page
     where tenant_id = :tenant_id and scope_id = :scope_id and tier = 'warm' and assigned_at is not null
       and (page_id = any(cast(:page_ids as uuid[])) or pinned_at is not null)
""")
LOAD_COLD = text("""
    select page_id, conversation_id, sealed_at, heat, heat_at, cools_at, pinned_at is not null,
           extract_ordinal is not null, extracted_at is not null, heat_tick, cools_at_tick, visits
      from memoryos.page
     where tenant_id = :tenant_id and scope_id = :scope_id and tier = 'warm' and cools_at <= memoryos.now()
     order by cools_at, last_turn_at, page_id limit :limit
""")
SAVE_PAGE_HEAT = text("""
    update memoryos.page p
       set heat = given.heat, heat_at = given.heat_at, cools_at = given.cools_at, version = p.version + 1,
           heat_tick = given.heat_tick, cools_at_tick = given.cools_at_tick, visits = given.visits,
           pinned_at = case when given.is_pinned then coalesce(p.pinned_at, memoryos.now()) end
      from unnest(cast(:page_ids as uuid[]), cast(:heats as float8[]), cast(:moments as timestamptz[]),
                  cast(:cooling as timestamptz[]), cast(:pins as boolean[]), cast(:ticks as bigint[]),
                  cast(:cooling_ticks as bigint[]), cast(:visits as integer[]))
           as given(page_id, heat, heat_at, cools_at, is_pinned, heat_tick, cools_at_tick, visits)
     where p.tenant_id = :tenant_id and p.page_id = given.page_id
""")
SET_COOLING = text("""
    update memoryos.page p set cools_at = given.cools_at, version = p.version + 1
      from unnest(cast(:page_ids as uuid[]), cast(:cooling as timestamptz[])) as given(page_id, cools_at)
     where p.tenant_id = :tenant_id and p.page_id = given.page_id
""")
ARCHIVE = text("""
    update memoryos.page
       set tier = 'archived', archived_at = memoryos.now(), cools_at = null, cools_at_tick = null, pinned_at = null,
           version = version + 1
     where tenant_id = :tenant_id and page_id = any(cast(:page_ids as uuid[]))
""")
READ_TICKS = text("select heat_ticks from memoryos.scope where tenant_id = :tenant_id and scope_id = :scope_id")
ADVANCE_TICKS = text("""
    update memoryos.scope set heat_ticks = heat_ticks + :count
     where tenant_id = :tenant_id and scope_id = :scope_id returning heat_ticks
""")
# One statement, so that the turns that are counted and those listed as later are the same ones. The list begins at
# the moment that is asked for; conversations that were silent since then cost nothing.
COUNT_USER_TURNS = text("""
    with said as materialized (
        select cast(coalesce(sum(user_turns), 0) as bigint) as turns from memoryos.conversation
         where tenant_id = :tenant_id and scope_id = :scope_id)
    update memoryos.scope s
       set heat_ticks = s.heat_ticks + greatest(said.turns - coalesce(s.turn_ticks, said.turns), 0),
           turn_ticks = said.turns
      from said where s.tenant_id = :tenant_id and s.scope_id = :scope_id
    returning s.heat_ticks,
              array(select t.recorded_at from memoryos.conversation c
                      join memoryos.turn t on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id
                     where c.tenant_id = :tenant_id and c.scope_id = :scope_id and t.role = 'user'
                       and c.last_activity_at > cast(:since as timestamptz) - interval '1 minute'
                       and t.recorded_at > cast(:since as timestamptz)
                     order by t.recorded_at) as later
""")
COOL_BY_TICK = text("""
    with due as (
        select page_id from memoryos.page
         where tenant_id = :tenant_id and scope_id = :scope_id and tier = 'warm' and cools_at_tick <= :ticks
         order by conversation_id, first_seq for no key update)
    update memoryos.page p
       set cools_at = greatest(memoryos.now(), p.sealed_at + :min_age_hours * interval '1 hour'), cools_at_tick = null,
           version = p.version + 1
      from due where p.tenant_id = :tenant_id and p.page_id = due.page_id
""")
COUNT_WARM = text("""
    select count(*) from memoryos.page
     where tenant_id = :tenant_id and scope_id = :scope_id and tier = 'warm' and assigned_at is not null
""")
LOAD_EVERY_WARM = text("""
    select p.page_id, p.conversation_id, p.sealed_at, p.heat, p.heat_at, p.cools_at, p.pinned_at is not null,
           p.extract_ordinal is not null, p.extracted_at is not null, p.heat_tick, p.cools_at_tick, p.visits,
           coalesce((select max(g.heat_linear) from memoryos.page_segment m
                       join memoryos.segment g on g.tenant_id = m.tenant_id and g.segment_id = m.segment_id
                      where m.tenant_id = p.tenant_id and m.page_id = p.page_id), 0) as segment_heat
      from memoryos.page p
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.tier = 'warm' and p.assigned_at is not null
     order by p.page_id
""")
FIND_SEGMENTS_OF_PAGES = text("""
    select page_id, segment_id from memoryos.page_segment
     where tenant_id = :tenant_id and page_id = any(cast(:page_ids as uuid[]))
""")
LOAD_KNOWLEDGE = text("""
    select knowledge_id, w0, strength_days, last_reinforced_at, importance, pinned_at is not null
      from memoryos.knowledge
     where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active'
       and knowledge_id = any(cast(:knowledge_ids as uuid[]))
     order by knowledge_id for no key update
""")
REINFORCE = text("""
    update memoryos.knowledge k
       set strength_days = given.strength_days, last_reinforced_at = given.at, forget_at = given.forget_at
      from unnest(cast(:knowledge_ids as uuid[]), cast(:strengths as float8[]), cast(:moments as timestamptz[]),
                  cast(:forgetting as timestamptz[])) as given(knowledge_id, strength_days, at, forget_at)
     where k.tenant_id = :tenant_id and k.knowledge_id = given.knowledge_id
""")


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that was given to a reader, at a moment of recorded time."""

    retrieval_id: UUID
    owner_kind: str
    owner_id: UUID
    cause: str
    at: datetime


@dataclass(frozen=True, slots=True)
class WarmPage:
    """The heat of a warm page and how far it has come; `cools_at` None means cooling was handled."""

    page_id: UUID
    conversation_id: UUID
    sealed_at: datetime
    heat: float
    heat_at: datetime
    cools_at: datetime | None
    pinned: bool
    handed: bool
    extracted: bool
    heat_tick: int = 0
    cools_at_tick: int | None = None
    visits: int = 0


@dataclass(frozen=True, slots=True)
class LiveKnowledge:
    """How firmly active knowledge is held."""

    knowledge_id: UUID
    w0: float
    strength_days: float
    last_reinforced_at: datetime
    importance: float
    pinned: bool


@dataclass(frozen=True, slots=True)
class Reinforced:
    """Knowledge after it was used: its new strength and when it will be forgotten (None for never)."""

    knowledge_id: UUID
    strength_days: float
    at: datetime
    forget_at: datetime | None


def load_accesses(connection: Connection, tenant_id: UUID, scope_id: UUID, *, limit: int) -> list[Access]:
    """Return accesses that were not applied yet, oldest first."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "limit": limit}
    return [Access(*row) for row in connection.execute(LOAD_ACCESSES, values)]


def mark_applied(connection: Connection, tenant_id: UUID, accesses: Sequence[Access]) -> None:
    """Note that these accesses have had their effect, whether or not they counted."""
    if accesses:
        values = {
            "tenant_id": tenant_id,
            "retrievals": [access.retrieval_id for access in accesses],
            "kinds": [access.owner_kind for access in accesses],
            "owners": [access.owner_id for access in accesses],
            "causes": [access.cause for access in accesses],
        }
        connection.execute(MARK_APPLIED, values)


def find_pages_of_turns(connection: Connection, tenant_id: UUID, turn_ids: Iterable[UUID]) -> dict[UUID, UUID]:
    """Return the page each turn lies in; turns that are still hot are left out."""
    values = {"tenant_id": tenant_id, "turn_ids": sorted(turn_ids)}
    rows = connection.execute(FIND_PAGES_OF_TURNS, values)
    return {row.turn_id: row.page_id for row in rows}


def find_segments_of_pages(
    connection: Connection, tenant_id: UUID, page_ids: Iterable[UUID]
) -> list[tuple[UUID, UUID]]:
    """Return (page id, segment id) pairs."""
    values = {"tenant_id": tenant_id, "page_ids": sorted(page_ids)}
    return [(page, segment) for page, segment in connection.execute(FIND_SEGMENTS_OF_PAGES, values)]


def lock_touched_pages(connection: Connection, tenant_id: UUID, scope_id: UUID, *, page_ids: Iterable[UUID]) -> None:
    """Lock the pages that were read, that are pinned or that are cold, after their conversations."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "page_ids": sorted(page_ids)}
    connection.execute(LOCK_TOUCHED_CONVERSATIONS, values)
    connection.execute(LOCK_TOUCHED, values)


def load_warm_pages(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, page_ids: Iterable[UUID]
) -> list[WarmPage]:
    """Return those of the pages that are warm, and every pinned page of the scope."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "page_ids": sorted(page_ids)}
    return [WarmPage(*row) for row in connection.execute(LOAD_WARM, values)]


def load_cold_pages(connection: Connection, tenant_id: UUID, scope_id: UUID, *, limit: int) -> list[WarmPage]:
    """Return warm pages whose moment of cooling has come, in its order."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "limit": limit}
    return [WarmPage(*row) for row in connection.execute(LOAD_COLD, values)]


def read_ticks(connection: Connection, tenant_id: UUID, scope_id: UUID) -> int:
    """Return where the scope's clock of heat stands: its ticks so far, under `ema_tick`."""
    return int(connection.execute(READ_TICKS, {"tenant_id": tenant_id, "scope_id": scope_id}).scalar_one())


def advance_ticks(connection: Connection, tenant_id: UUID, scope_id: UUID, *, count: int) -> int:
    """Let some retrievals pass on the scope's clock of heat; return where it stands. The caller holds the scope."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "count": count}
    return int(connection.execute(ADVANCE_TICKS, values).scalar_one())


def count_user_turns(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, since: datetime | None = None
) -> tuple[int, list[datetime]]:  # fmt: skip
    """Let the user's turns since the last call pass on the scope's clock of heat, which begins at the first call.

    Returns where it stands, and when the user spoke after `since`, ascending. The caller holds the scope.
    """
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "since": since}
    row = connection.execute(COUNT_USER_TURNS, values).one()
    return int(row.heat_ticks), list(row.later)


def cool_by_tick(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, ticks: int, min_age_hours: float
) -> None:  # fmt: skip
    """Let pages whose tick has come be looked at as cold, as soon as they are old enough."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "ticks": ticks, "min_age_hours": min_age_hours}
    connection.execute(COOL_BY_TICK, values)


def count_warm_pages(connection: Connection, tenant_id: UUID, scope_id: UUID) -> int:
    """Return how many pages of a scope are warm."""
    return int(connection.execute(COUNT_WARM, {"tenant_id": tenant_id, "scope_id": scope_id}).scalar_one())


def load_every_warm_page(connection: Connection, tenant_id: UUID, scope_id: UUID) -> list[tuple[WarmPage, float]]:
    """Return every warm page of a scope with the linear heat of its segment, for making room."""
    rows = connection.execute(LOAD_EVERY_WARM, {"tenant_id": tenant_id, "scope_id": scope_id})
    return [(WarmPage(*page), heat) for *page, heat in rows]


def save_page_heat(connection: Connection, tenant_id: UUID, pages: Sequence[WarmPage]) -> None:
    """Store heat, cooling moment and pin of pages."""
    if pages:
        values = {
            "tenant_id": tenant_id,
            "page_ids": [page.page_id for page in pages],
            "heats": [page.heat for page in pages],
            "moments": [page.heat_at for page in pages],
            "cooling": [page.cools_at for page in pages],
            "pins": [page.pinned for page in pages],
            "ticks": [page.heat_tick for page in pages],
            "cooling_ticks": [page.cools_at_tick for page in pages],
            "visits": [page.visits for page in pages],
        }
        connection.execute(SAVE_PAGE_HEAT, values)


def set_cooling(connection: Connection, tenant_id: UUID, moments: dict[UUID, datetime | None]) -> None:
    """Set when pages are looked at again; None when their cooling is handled."""
    if moments:
        values = {
            "tenant_id": tenant_id,
            "page_ids": list(moments),
            "cooling": list(moments.values()),
        }
        connection.execute(SET_COOLING, values)


def archive_pages(connection: Connection, tenant_id: UUID, page_ids: Sequence[UUID]) -> None:
    """Take distilled pages out of the warm tier; the caller takes them out of the indexes."""
    if page_ids:
        connection.execute(ARCHIVE, {"tenant_id": tenant_id, "page_ids": list(page_ids)})


def lock_live_knowledge(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, knowledge_ids: Iterable[UUID]
) -> list[LiveKnowledge]:
    """Return those of the rows that are active, locked until the transaction ends."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "knowledge_ids": sorted(knowledge_ids)}
    return [LiveKnowledge(*row) for row in connection.execute(LOAD_KNOWLEDGE, values)]


def reinforce(connection: Connection, tenant_id: UUID, reinforced: Sequence[Reinforced]) -> None:
    """Store the strength of knowledge that was used."""
    if reinforced:
        values = {
            "tenant_id": tenant_id,
            "knowledge_ids": [each.knowledge_id for each in reinforced],
            "strengths": [each.strength_days for each in reinforced],
            "moments": [each.at for each in reinforced],
            "forgetting": [each.forget_at for each in reinforced],
        }
        connection.execute(REINFORCE, values)
