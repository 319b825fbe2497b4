"""What forgetting touches: rows that are due, their history, the turns that leave recall, purging, coming back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.domain.eviction import Statement, plan_overflow
from memoryos_pipeline.domain.forgetting import weight
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.heat import archive_pages
from memoryos_pipeline.store.recallable import mark_left_turns, mark_turns_of, unmark_turns_of
from memoryos_pipeline.store.vectors import remove_index_rows

# The moment is asked for once: a function in the condition would be run for every row of the memory.
ASSESS = text("""
    with moment as materialized (select memoryos.now() as at)
    select count(*) filter (where status = 'active') as live_rows,
           count(*) filter (where status = 'active' and pinned_at is null
                                  and (forget_at <= (select at from moment) or expires_at <= (select at from moment)))
               as due_rows,
           count(*) filter (where status = 'forgotten' and purge_at <= (select at from moment)) as purge_rows,
           (select on_hold from memoryos.tenant where tenant_id = :tenant_id) as on_hold
      from memoryos.knowledge where tenant_id = :tenant_id and scope_id = :scope_id
""")
# Not what is about to be indexed: it was restored a moment ago.
FIND_DUE = text("""
    select knowledge_id from memoryos.knowledge k
     where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active' and pinned_at is null
       and (forget_at <= memoryos.now() or expires_at <= memoryos.now())
       and not exists (select from memoryos.work w
                        where w.tenant_id = k.tenant_id and w.kind = 'embed'
                          and w.subject_key = 'knowledge:' || k.knowledge_id and w.state in ('ready', 'leased'))
     order by least(forget_at, expires_at), knowledge_id limit :limit
       for no key update skip locked
""")
# What a row has replaced goes with it: a history without its present would be told as if it still held.
FORGET = text("""
    with recursive gone as (
        select unnest(cast(:ids as uuid[])) as knowledge_id
        union
        select k.knowledge_id from gone
          join memoryos.knowledge k on k.tenant_id = :tenant_id and k.scope_id = :scope_id
                                   and k.superseded_by = gone.knowledge_id and k.status in ('superseded', 'closed'))
    update memoryos.knowledge k
       set status = 'forgotten', forgotten_at = memoryos.now(),
           purge_at = memoryos.now() + :grace_days * interval '1 day'
      from gone where k.tenant_id = :tenant_id and k.knowledge_id = gone.knowledge_id
    returning k.knowledge_id
""")
# Indexing a page's turns holds its conversation, so that neither undoes what the other has just done.
LOCK_CONVERSATIONS = text("""
    select c.conversation_id from memoryos.conversation c
     where c.tenant_id = :tenant_id and c.conversation_id in (
           select s.conversation_id from memoryos.knowledge k
             join memoryos.knowledge_source s on s.tenant_id = k.tenant_id and s.knowledge_id = k.knowledge_id
            where k.tenant_id = :tenant_id and k.scope_id = :scope_id and k.status = 'forgotten')
     order by c.conversation_id for no key update
""")
FIND_ARCHIVED_PAGES = text("""
    select distinct s.page_id from memoryos.knowledge k
      join memoryos.knowledge_source s on s.tenant_id = k.tenant_id and s.knowledge_id = k.knowledge_id
      join memoryos.page p on p.tenant_id = s.tenant_id and p.page_id = s.page_id and p.tier = 'archived'
     where k.tenant_id = :tenant_id and k.scope_id = :scope_id and k.status = 'forgotten'
     order by s.page_id
""")
# What is too much is due at once, and goes the way of everything that is: tombstone, grace, brakes, events.
END_OVERFLOW = text("""
    update memoryos.knowledge set forget_at = memoryos.now()
     where tenant_id = :tenant_id and knowledge_id = any(cast(:ids as uuid[])) and status = 'active'
       and pinned_at is null and (forget_at is null or forget_at > memoryos.now())
""")
LOAD_LIVE = text("""
    select knowledge_id, kind = 'assistant_kb' as of_assistant, w0, strength_days, last_reinforced_at, turn_at,
           recorded_at
      from memoryos.knowledge
     where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active' and pinned_at is null
""")
FIND_PURGEABLE = text("""
    select knowledge_id from memoryos.knowledge
     where tenant_id = :tenant_id and scope_id = :scope_id and status = 'forgotten' and purge_at <= memoryos.now()
     order by purge_at, knowledge_id limit :limit
       for update skip locked
""")
DROP_TRAITS = text("""
    delete from memoryos.trait
     where tenant_id = :tenant_id and scope_id = :scope_id and knowledge_ids <@ cast(:ids as uuid[])
""")
TRIM_TRAITS = text("""
    update memoryos.trait
       set knowledge_ids = array(select each from unnest(knowledge_ids) with ordinality as kept(each, place)
                                  where each <> all(cast(:ids as uuid[])) order by place)
     where tenant_id = :tenant_id and scope_id = :scope_id and knowledge_ids && cast(:ids as uuid[])
""")
PURGE_VERDICTS = text("""
    delete from memoryos.verdict
     where tenant_id = :tenant_id and scope_id = :scope_id
       and (new_knowledge_id = any(cast(:ids as uuid[])) or old_knowledge_id = any(cast(:ids as uuid[])))
""")
PURGE_NAMES = text("""
    delete from memoryos.entity e
     where e.tenant_id = :tenant_id and e.scope_id = :scope_id
       and e.entity_id in (select m.entity_id from memoryos.mention m
                            where m.tenant_id = :tenant_id and m.knowledge_id = any(cast(:ids as uuid[])))
       and not exists (select from memoryos.mention m
                        where m.tenant_id = :tenant_id and m.entity_id = e.entity_id
                          and m.knowledge_id <> all(cast(:ids as uuid[])))
""")
PURGE = text("""
    delete from memoryos.knowledge where tenant_id = :tenant_id and knowledge_id = any(cast(:ids as uuid[]))
""")
# An answer repeats what was said. It is kept for a crash before its effect, so it is not needed once its work is over.
DROP_ANSWERS = text("""
    delete from memoryos.llm_call c
     where c.tenant_id = :tenant_id and c.scope_id = :scope_id
       and not exists (select from memoryos.work w
                        where w.tenant_id = c.tenant_id and w.work_id = c.work_id and w.state in ('ready', 'leased')
                          and c.at > clock_timestamp() - interval '1 day')
""")
FIND_STANDING = text("""
    select scope_id, status, superseded_by from memoryos.knowledge
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id
""")
# Whoever brings something back that had run out gives it its whole time again.
RENEW = text("""
    update memoryos.knowledge set expires_at = memoryos.now() + (expires_at - recorded_at)
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id and expires_at is not null
""")
RESTORE_HISTORY = text("""
    with recursive back as (
        select knowledge_id, lineage_id, cast(null as uuid) as next_lineage from memoryos.knowledge
         where tenant_id = :tenant_id and knowledge_id = :knowledge_id
        union
        select k.knowledge_id, k.lineage_id, back.lineage_id from back
          join memoryos.knowledge k on k.tenant_id = :tenant_id and k.scope_id = :scope_id
                                   and k.superseded_by = back.knowledge_id and k.status = 'forgotten')
    update memoryos.knowledge k
       set status = case when back.lineage_id = back.next_lineage then 'superseded' else 'closed' end,
           forgotten_at = null, purge_at = null
      from back
     where k.tenant_id = :tenant_id and k.knowledge_id = back.knowledge_id and k.knowledge_id <> :knowledge_id
    returning k.knowledge_id
""")
FIND_SOURCE_PAGES = text("""
    select distinct s.page_id from memoryos.knowledge_source s
     where s.tenant_id = :tenant_id and s.knowledge_id = any(cast(:ids as uuid[])) order by s.page_id
""")
FIND_WARM_SOURCES = text("""
    select p.page_id, p.conversation_id from memoryos.page p
     where p.tenant_id = :tenant_id and p.tier = 'warm' and p.page_id in (
           select s.page_id from memoryos.knowledge_source s
            where s.tenant_id = :tenant_id and s.knowledge_id = any(cast(:ids as uuid[])))
     order by p.page_id for no key update
""")
FIND_PINNING = text("""
    select scope_id, strength_days, importance, w0, pinned_at is not null from memoryos.knowledge
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id and status = 'active' for no key update
""")
# Whoever lets go of a statement has just looked at it: it fades from now on.
SAVE_PINNING = text("""
    update memoryos.knowledge
       set pinned_at = case when :pinned then memoryos.now() end, forget_at = :forget_at,
           last_reinforced_at = case when :pinned then last_reinforced_at else memoryos.now() end
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id
""")
LIST_DUE = text("""
    select knowledge_id, kind, content, forget_at, expires_at from memoryos.knowledge
     where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active' and pinned_at is null
       and (forget_at <= memoryos.now() or expires_at <= memoryos.now())
     order by least(forget_at, expires_at), knowledge_id limit :limit
""")
FIND_LAST_BRAKE = text("""
    select amount from memoryos.event
     where tenant_id = :tenant_id and subject_id = :scope_id and kind = 'forget_braked'
       and at > memoryos.now() - interval '1 day'
     order by at desc, event_id desc limit 1
""")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a sweep of a scope would do now: rows that are live, rows to forget, rows to purge."""

    live_rows: int
    due_rows: int
    purge_rows: int
    on_hold: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one row stands."""

    scope_id: UUID
    status: str
    superseded_by: UUID | None


@dataclass(frozen=True, slots=True)
class Pinning:
    """Whether a live row is pinned, and what decay needs to know of it."""

    scope_id: UUID
    strength_days: float
    importance: float
    w0: float
    pinned: bool


def find_pinning(connection: Connection, tenant_id: UUID, knowledge_id: UUID) -> Pinning | None:
    """Return whether a row is pinned, locked; None when it is not live."""
    row = connection.execute(FIND_PINNING, {"tenant_id": tenant_id, "knowledge_id": knowledge_id}).first()
    return Pinning(*row) if row else None


def save_pinning(
    connection: Connection, tenant_id: UUID, knowledge_id: UUID, pinning: Pinning, *, forget_at: datetime | None
) -> None:  # fmt: skip
    """Store a pin, or that there is none any more, and when the row ends then."""
    values = {"tenant_id": tenant_id, "knowledge_id": knowledge_id, "pinned": pinning.pinned, "forget_at": forget_at}
    connection.execute(SAVE_PINNING, values)


def list_due(connection: Connection, tenant_id: UUID, scope_id: UUID, *, limit: int) -> list[dict[str, Any]]:
    """Return the rows a sweep of a scope would forget now, the longest due first."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "limit": limit}
    return [dict(row) for row in connection.execute(LIST_DUE, values).mappings()]


def assess(connection: Connection, tenant_id: UUID, scope_id: UUID) -> Assessment:
    """Count what is due in a scope; the same rows a sweep would take."""
    row = connection.execute(ASSESS, {"tenant_id": tenant_id, "scope_id": scope_id}).one()
    return Assessment(row.live_rows, row.due_rows, row.purge_rows, bool(row.on_hold))


def forget_due(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, limit: int, grace_days: float
) -> tuple[int, list[UUID]]:  # fmt: skip
    """Tombstone up to `limit` due rows and what they replaced, and take them out of every search.

    Returns how many due rows there were, and the ids of all that were forgotten; the caller holds the scope's lock.
    """
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    due = connection.execute(FIND_DUE, {**key, "limit": limit}).scalars().all()
    if not due:
        return 0, []
    return len(due), entomb(connection, tenant_id, scope_id, due, grace_days=grace_days)


def entomb(
    connection: Connection, tenant_id: UUID, scope_id: UUID, ids: Sequence[UUID], *, grace_days: float
) -> list[UUID]:
    """Tombstone rows and what they replaced, and take them out of every search; return the ids of all."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "ids": list(ids), "grace_days": grace_days}
    forgotten = connection.execute(FORGET, values).scalars().all()
    remove_index_rows(connection, tenant_id, "knowledge", forgotten)
    return sorted(forgotten)


def archive_sources(connection: Connection, tenant_id: UUID, knowledge_ids: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    """Take the warm pages that these rows are from out of ranking; return each page and its conversation."""
    found = connection.execute(FIND_WARM_SOURCES, {"tenant_id": tenant_id, "ids": list(knowledge_ids)})
    pages = [(row.page_id, row.conversation_id) for row in found]
    page_ids = [page_id for page_id, _ in pages]
    archive_pages(connection, tenant_id, page_ids)
    remove_index_rows(connection, tenant_id, "page", page_ids)
    return pages


def end_overflow(connection: Connection, tenant_id: UUID, scope_id: UUID, *, policy: Policy) -> int:
    """Let the statements a policy has no room for be due now, unless pinned; return how many."""
    now = read_now(connection)
    live = connection.execute(LOAD_LIVE, {"tenant_id": tenant_id, "scope_id": scope_id})
    over = plan_overflow([_statement(row, now) for row in live], now=now, policy=policy)
    return connection.execute(END_OVERFLOW, {"tenant_id": tenant_id, "ids": over}).rowcount if over else 0


def _statement(row: Row[Any], now: datetime) -> Statement:
    held = weight(now, row.last_reinforced_at, strength_days=row.strength_days, w0=row.w0)
    return Statement(row.knowledge_id, row.of_assistant, held, row.turn_at, row.recorded_at)


def release_turns(connection: Connection, tenant_id: UUID, scope_id: UUID) -> None:
    """Take turns out of recall whose page is archived and whose every knowledge row is forgotten."""
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    connection.execute(LOCK_CONVERSATIONS, key)
    pages = list(connection.execute(FIND_ARCHIVED_PAGES, key).scalars())
    remove_index_rows(connection, tenant_id, "turn", mark_left_turns(connection, tenant_id, pages))


def purge_due(connection: Connection, tenant_id: UUID, scope_id: UUID, *, limit: int) -> list[UUID]:
    """Delete up to `limit` tombstones whose grace is over, with every row that repeats their text; return their ids.

    A turn that nothing else cites leaves recall for good, however warm its page is.
    """
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    ids = list(connection.execute(FIND_PURGEABLE, {**key, "limit": limit}).scalars())
    if ids:
        remove_index_rows(connection, tenant_id, "turn", mark_turns_of(connection, tenant_id, ids))
        for statement in (DROP_TRAITS, TRIM_TRAITS, PURGE_VERDICTS, PURGE_NAMES, PURGE, DROP_ANSWERS):
            connection.execute(statement, {**key, "ids": ids})
    return ids


def last_brake(connection: Connection, tenant_id: UUID, scope_id: UUID) -> float | None:
    """Return how many rows were due when the scope's brake last alarmed within a day, or None."""
    amount: float | None = connection.execute(FIND_LAST_BRAKE, {"tenant_id": tenant_id, "scope_id": scope_id}).scalar()
    return amount


def find_standing(connection: Connection, tenant_id: UUID, knowledge_id: UUID) -> Standing | None:
    """Return where a row stands, or None when there is none."""
    row = connection.execute(FIND_STANDING, {"tenant_id": tenant_id, "knowledge_id": knowledge_id}).first()
    return Standing(*row) if row else None


def restore_history(connection: Connection, tenant_id: UUID, scope_id: UUID, knowledge_id: UUID) -> list[UUID]:
    """Bring back the forgotten rows that a row had replaced, as history, and the turns of all; return their ids."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "knowledge_id": knowledge_id}
    connection.execute(RENEW, values)
    history = sorted(connection.execute(RESTORE_HISTORY, values).scalars())
    unmark_turns_of(connection, tenant_id, [knowledge_id, *history])
    return history


def find_source_pages(connection: Connection, tenant_id: UUID, knowledge_ids: Sequence[UUID]) -> list[UUID]:
    """Return the pages these rows cite turns of."""
    values = {"tenant_id": tenant_id, "ids": list(knowledge_ids)}
    return list(connection.execute(FIND_SOURCE_PAGES, values).scalars())
