"""Mends what can be mended of a broken memory. Each step finds its own damage, so that a second run finds none.

Nothing that was said is changed or made up: work is owed again, counters are counted again, index rows that must not
be there are removed. What depends on a worker is owed here and done by it. Whatever the invariants still report
afterwards needs a person.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.store.database import Database, try_again
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.marks import read_again
from memoryos_pipeline.store.publishing import reap_expired
from memoryos_pipeline.store.vectors import remove_index_rows

# These joins read a tenant whole: without fresh statistics the planner would loop over it row by row.
READ_WHOLE = text("select set_config('enable_nestloop', 'off', true)")

STRANDED = text("""
    select tenant_id, work_id, kind, coalesce(owner, 'nobody') as owner,
           attempts >= max_attempts and (begun or state = 'ready') as is_spent
      from memoryos.work
     where (state = 'leased' and lease_until < clock_timestamp()) or (state = 'ready' and attempts >= max_attempts)
     order by work_id
""")
LIMIT_ATTEMPTS = text("""
    update memoryos.work set attempts = max_attempts
     where tenant_id = :tenant_id and attempts > max_attempts and state <> 'leased'
    returning cast(work_id as text), kind
""")
GIVE_REASONS = text("""
    insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)
    select w.tenant_id, w.work_id, w.fence, coalesce(w.last_error_class, 'unknown'), 'the reason was lost'
      from memoryos.work w
     where w.tenant_id = :tenant_id and w.state = 'dead'
       and not exists (select from memoryos.dead_letter d where d.tenant_id = w.tenant_id and d.work_id = w.work_id)
     order by w.work_id
    returning cast(work_id as text), error_class
""")
COUNT_SEALED = text("""
    with placed as (
        select conversation_id, last_seq,
               first_seq = 1 + coalesce(lag(last_seq) over (partition by conversation_id order by first_seq), 0) as fits
          from memoryos.page where tenant_id = :tenant_id
    ), covered as (
        select c.conversation_id, coalesce(max(p.last_seq), 0) as through
          from memoryos.conversation c left join placed p on p.conversation_id = c.conversation_id
         where c.tenant_id = :tenant_id group by c.conversation_id having coalesce(bool_and(p.fits), true)
    )
    update memoryos.conversation c
       set sealed_through = v.through, indexed_through = least(c.indexed_through, v.through)
      from covered v
     where c.tenant_id = :tenant_id and c.conversation_id = v.conversation_id and v.through < c.next_seq
       and c.sealed_through <> v.through
    returning c.external_id, v.through
""")
COUNT_INDEXED = text("""
    with counted as (
        select c.conversation_id, coalesce(
               (select min(p.first_seq) - 1 from memoryos.page p
                 where p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id and p.indexed_at is null),
               c.sealed_through) as through
          from memoryos.conversation c where c.tenant_id = :tenant_id
    )
    update memoryos.conversation c set indexed_through = v.through from counted v
     where c.tenant_id = :tenant_id and c.conversation_id = v.conversation_id
       and c.indexed_through <> v.through and v.through <= c.sealed_through
    returning c.external_id, v.through
""")
COUNT_ASSIGNED = text("""
    with counted as (
        select c.conversation_id, coalesce(
               (select max(p.last_seq) from memoryos.page p
                 where p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id
                   and p.assigned_at is not null), 0) as through
          from memoryos.conversation c where c.tenant_id = :tenant_id
    )
    update memoryos.conversation c set assigned_through = v.through from counted v
     where c.tenant_id = :tenant_id and c.conversation_id = v.conversation_id and c.assigned_through <> v.through
    returning c.external_id, v.through
""")
# Whoever is named here as extractor is not asked again.
FORGET_EXTRACTOR = text("""
    update memoryos.page set extracted_by = null, version = version + 1
     where tenant_id = :tenant_id and extracted_at is null and extracted_by is not null
    returning cast(page_id as text), first_seq
""")
DATE_PURGES = text("""
    update memoryos.knowledge set purge_at = forgotten_at + :grace_days * interval '1 day'
     where tenant_id = :tenant_id and status = 'forgotten' and purge_at is null
    returning cast(knowledge_id as text), purge_at
""")

UNOWED_BY_PAGE = text("""
    select due.kind, due.subject_key, p.scope_id
      from memoryos.page p
      cross join lateral (values
           ('summarize', cast(p.page_id as text), true, p.summary is null),
           ('embed', 'turns:' || p.page_id, true, p.indexed_at is null),
           ('embed', 'summary:' || p.page_id, p.summary is not null, false),
           ('distill', cast(p.page_id as text), p.extract_ordinal is not null, p.extracted_at is null)
           ) due(kind, subject_key, is_expected, is_missing)
      left join memoryos.work w on w.tenant_id = p.tenant_id and w.kind = due.kind and w.subject_key = due.subject_key
     where p.tenant_id = :tenant_id and due.is_expected
       and (w.work_id is null or (due.is_missing and w.state = 'done'))
     order by due.kind, due.subject_key
""")
# The first page in line decides: while it is not ready, those behind it wait for it and nothing is missing.
UNOWED_SEGMENT = text("""
    with line as (
        select distinct on (p.scope_id) p.scope_id, p.summarized_at is not null and e.state = 'done' as is_ready
          from memoryos.page p
          join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
          left join memoryos.work s on s.tenant_id = p.tenant_id and s.kind = 'summarize'
                                   and s.subject_key = cast(p.page_id as text)
          left join memoryos.work e on e.tenant_id = p.tenant_id and e.kind = 'embed'
                                   and e.subject_key = 'summary:' || cast(p.page_id as text)
         where p.tenant_id = :tenant_id and p.extract_ordinal is null and p.assigned_at is null
           and coalesce(s.state, '') not in ('dead', 'cancelled') and coalesce(e.state, '') not in ('dead', 'cancelled')
         order by p.scope_id, c.created_at, c.conversation_id, p.first_seq
    )
    select 'segment', cast(scope_id as text), scope_id from line
     where is_ready
       and not exists (select from memoryos.work w
                        where w.tenant_id = :tenant_id and w.kind = 'segment'
                          and w.subject_key = cast(line.scope_id as text) and w.state not in ('done', 'cancelled'))
""")
UNOWED_MERGE = text("""
    select 'merge', cast(s.scope_id as text), s.scope_id
      from memoryos.scope s
      left join memoryos.page p on p.tenant_id = s.tenant_id and p.scope_id = s.scope_id
                               and p.extract_ordinal = s.merged_ordinal + 1
      left join memoryos.work d on d.tenant_id = s.tenant_id and d.kind = 'distill'
                               and d.subject_key = cast(p.page_id as text)
     where s.tenant_id = :tenant_id and s.erased_at is null and s.merged_ordinal < s.extract_ordinal
       and (p.page_id is null or p.extracted_at is not null or d.state in ('dead', 'cancelled'))
       and not exists (select from memoryos.work w
                        where w.tenant_id = s.tenant_id and w.kind = 'merge'
                          and w.subject_key = cast(s.scope_id as text) and w.state not in ('done', 'cancelled'))
""")
UNOWED_ADVANCE = text("""
    select 'advance', cast(c.conversation_id as text), c.scope_id
      from memoryos.conversation c
      cross join lateral (select count(*) as turns from memoryos.turn t
                           where t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id
                             and t.seq > c.sealed_through) hot
      join memoryos.scope s on s.tenant_id = c.tenant_id and s.scope_id = c.scope_id
      left join lateral (
           select o.settings from memoryos.policy o
            where o.tenant_id = s.tenant_id and (o.user_id = s.user_id or o.user_id is null)
            order by o.user_id nulls last, o.version desc limit 1) own on true
     where c.tenant_id = :tenant_id and c.sealed_through < c.next_seq - 1 and hot.turns > 0
       and (c.closed_at is not null
            or (hot.turns > coalesce(cast(own.settings ->> 'hot_capacity_turns' as integer), :capacity_turns)
                and coalesce(own.settings ->> 'hot', '') <> 'token_budget'
                and coalesce(own.settings ->> 'page_unit', '') <> 'tokens')
            or c.last_activity_at <= memoryos.now() - interval '1 minute'
                 * (coalesce(s.idle_flush_minutes, :idle_minutes) + :grace_minutes))
       and not exists (select from memoryos.work w
                        where w.tenant_id = c.tenant_id and w.kind = 'advance'
                          and w.subject_key = cast(c.conversation_id as text)
                          and w.state not in ('done', 'cancelled'))
""")
UNINDEXED = text("""
    with missing as (
        select distinct r.subject_key from memoryos.recallable r
         where r.tenant_id = :tenant_id and r.is_due and r.content ~ '[^[:space:]]'
           and not exists (select from memoryos.embedding e
                            where e.tenant_id = r.tenant_id
                              and e.space_id in (select space_id from memoryos.vector_space)
                              and e.owner_kind = r.owner_kind and e.owner_id = r.owner_id
                              and e.input_sha256 = sha256(convert_to(r.content, 'UTF8')))
    )
    select 'embed', m.subject_key, coalesce(p.scope_id, k.scope_id, c.scope_id)
      from missing m
      left join memoryos.conversation c on c.tenant_id = :tenant_id
                                       and c.conversation_id = cast(split_part(m.subject_key, ':', 2) as uuid)
      left join memoryos.page p on p.tenant_id = :tenant_id
                               and p.page_id = cast(split_part(m.subject_key, ':', 2) as uuid)
      left join memoryos.knowledge k on k.tenant_id = :tenant_id
                                    and k.knowledge_id = cast(split_part(m.subject_key, ':', 2) as uuid)
     where coalesce(p.scope_id, k.scope_id, c.scope_id) is not null
     order by m.subject_key
""")
ORPHANS = text("""
    with indexed as (
        select owner_kind, owner_id from memoryos.embedding where tenant_id = :tenant_id
        union
        select owner_kind, owner_id from memoryos.posting_length where tenant_id = :tenant_id
        union
        select owner_kind, owner_id from memoryos.posting where tenant_id = :tenant_id
    )
    select i.owner_kind, i.owner_id from indexed i
     where not exists (select from memoryos.recallable r
                        where r.tenant_id = :tenant_id and r.owner_kind = i.owner_kind and r.owner_id = i.owner_id)
       and not exists (select from memoryos.segment g
                        where g.tenant_id = :tenant_id and g.segment_id = i.owner_id and i.owner_kind = 'segment')
     order by i.owner_kind, i.owner_id
""")


@dataclass(frozen=True, slots=True)
class Mended:
    """One thing that was mended: what kind of damage, of what, and a sentence."""

    what: str
    subject: str
    sentence: str


SWEEP_GRACE_MINUTES = 5
"""An idle conversation is the sweep's to seal; only one it has left for this long is mended."""

Step = Callable[[Connection, UUID], list[Mended]]


def repair_leases(ledger: Database) -> list[tuple[UUID, Mended]]:
    """Take back leases that ran out, in every tenant, and bury rows without a try left; return (tenant, mended)."""
    with ledger.across_tenants() as connection:
        stranded = list(connection.execute(STRANDED).all())
    reaped = bool(stranded)
    while reaped:
        with ledger.across_tenants() as connection:
            reaped = reap_expired(connection) > 0
    return [(row.tenant_id, _stranded(row.work_id, row.kind, row.owner, is_spent=row.is_spent)) for row in stranded]


def repair_tenant(owner: Database, tenant_id: UUID, *, policy: Policy = DEFAULT, max_attempts: int = 5) -> list[Mended]:
    """Mend one tenant step by step, each a transaction of its own; return what was mended, nothing when all is well."""
    mended: list[Mended] = []
    for step in _steps(policy, max_attempts):
        mended += try_again(partial(_mend, owner, tenant_id, step))
    read = read_again(owner, tenant_id)
    if read:
        mended.append(Mended("marks", str(read), f"{read} indexed turns were read again: they ask, or tell a time."))
    return mended


def _mend(owner: Database, tenant_id: UUID, step: Step) -> list[Mended]:
    with owner.transaction(tenant_id) as connection:
        connection.execute(READ_WHOLE)
        return step(connection, tenant_id)


def _steps(policy: Policy, max_attempts: int) -> list[Step]:
    """Return the steps in their order: counters before what is owed by them, removal before indexing anew."""
    hot = {
        "capacity_turns": policy.hot_capacity_turns,
        "idle_minutes": policy.idle_flush_minutes,
        "grace_minutes": SWEEP_GRACE_MINUTES,
    }
    grace = {"grace_days": policy.forget_grace_days}

    def owing(what: str, query: str, reason: str) -> Step:
        statement, values = QUERIES[query], hot if query == "advance" else {}
        return lambda connection, tenant_id: _owe_found(
            connection, tenant_id, list(connection.execute(statement, {"tenant_id": tenant_id, **values}).all()),
            what=what, reason=reason, max_attempts=max_attempts,
        )  # fmt: skip

    return [
        _updating("attempts", LIMIT_ATTEMPTS, "The {1} work {0} had more attempts than it may; counted as its limit."),
        _updating("dead letter", GIVE_REASONS, "The dead work {0} had no reason; it now says that it was lost."),
        _updating("watermark", COUNT_SEALED, "Conversation {0} is sealed through turn {1}, as its pages say."),
        _updating("watermark", COUNT_INDEXED, "Conversation {0} is indexed through turn {1}, as its pages say."),
        _updating("watermark", COUNT_ASSIGNED, "Conversation {0} is in segments through turn {1}, as its pages say."),
        _updating("extractor", FORGET_EXTRACTOR, "Page {0} named who distilled it, but nothing was distilled."),
        _updating(
            "purge date", DATE_PURGES, "Forgotten knowledge {0} had no date; it can be restored until {1}.", grace
        ),
        owing("missing work", "page", "its page needs it"),
        owing("missing work", "segment", "summarized pages wait for a segment"),
        owing("missing work", "merge", "distilled pages wait to be merged"),
        owing("never sealed", "advance", "its turns leave the hot buffer"),
        _remove_orphans,
        owing("not indexed", "index", "it may be recalled and is in no index"),
    ]


QUERIES = {
    "page": UNOWED_BY_PAGE,
    "segment": UNOWED_SEGMENT,
    "merge": UNOWED_MERGE,
    "advance": UNOWED_ADVANCE,
    "index": UNINDEXED,
}


def _updating(what: str, statement: TextClause, sentence: str, values: dict[str, float] | None = None) -> Step:
    def step(connection: Connection, tenant_id: UUID) -> list[Mended]:
        rows = connection.execute(statement, {"tenant_id": tenant_id, **(values or {})})
        return [Mended(what, str(row[0]), sentence.format(*row)) for row in rows]

    return step


def _owe_found(
    connection: Connection,
    tenant_id: UUID,
    found: Sequence[tuple[str, str, UUID]],
    *,
    what: str,
    reason: str,
    max_attempts: int,
) -> list[Mended]:
    owed = [Owed(WorkKind(kind), subject_key, scope_id) for kind, subject_key, scope_id in found]
    owe(connection, tenant_id, owed, max_attempts=max_attempts)
    return [
        Mended(what, item.subject_key, f"The {item.kind} work {item.subject_key} is owed: {reason}.") for item in owed
    ]


def _remove_orphans(connection: Connection, tenant_id: UUID) -> list[Mended]:
    orphans: dict[str, list[UUID]] = {}
    for owner_kind, owner_id in connection.execute(ORPHANS, {"tenant_id": tenant_id}):
        orphans.setdefault(owner_kind, []).append(owner_id)
    for owner_kind, owner_ids in orphans.items():
        remove_index_rows(connection, tenant_id, owner_kind, owner_ids)
    return [
        Mended("index rows", str(owner_id), f"The {owner_kind} {owner_id} may not be recalled; it left every index.")
        for owner_kind, owner_ids in orphans.items()
        for owner_id in owner_ids
    ]


def _stranded(work_id: int, kind: str, owner: str, *, is_spent: bool) -> Mended:
    became = "given up: no try is left" if is_spent else f"ready again: the lease of {owner} ran out"
    return Mended("stranded lease", str(work_id), f"The {kind} work {work_id} is {became}.")
