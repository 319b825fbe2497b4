"""Knowledge rows: the queue of pages to merge, neighbours, whole lineages, and writing what a plan decided."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection, Row, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from memoryos_pipeline.domain import forgetting
from memoryos_pipeline.domain.knowledge import Candidate, Neighbour
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.truths import Plan, SlotQuery, Truth

NO_SLOTS = SlotQuery()

FIND_SCOPE = text("""
    select extract_ordinal, merged_ordinal, lock_version from memoryos.scope
     where tenant_id = :tenant_id and scope_id = :scope_id and erased_at is null
""")
# "no key update": recording turns only refers to the scope and must not wait for a merge.
LOCK_SCOPE = text(FIND_SCOPE.text + " for no key update")
NEXT_EXTRACT_ORDINAL = text("""
    update memoryos.scope set extract_ordinal = extract_ordinal + 1
     where tenant_id = :tenant_id and scope_id = :scope_id returning extract_ordinal
""")
MOVE_SCOPE = text("""
    update memoryos.scope set lock_version = lock_version + 1, merged_ordinal = greatest(merged_ordinal, :merged)
     where tenant_id = :tenant_id and scope_id = :scope_id
""")
FIND_TURN_IN_LINE = text("""
    select p.page_id, p.conversation_id, p.extracted_by, p.extracted_at is not null as is_distilled, w.state
      from memoryos.page p
      left join memoryos.work w
        on w.tenant_id = p.tenant_id and w.kind = 'distill' and w.subject_key = p.page_id::text
     where p.tenant_id = :tenant_id and p.scope_id = :scope_id and p.extract_ordinal = :ordinal
""")
COUNT_LIVE = text("""
    select count(*) from memoryos.knowledge
     where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active'
""")
FIND_LIVE = text("""
    with near as (
        select knowledge_id from memoryos.knowledge
         where tenant_id = :tenant_id and knowledge_id = any(cast(:ids as uuid[]))
        union
        select knowledge_id from memoryos.knowledge
         where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active'
           and (slot = any(cast(:slots as text[]))
                or exists (select from unnest(cast(:prefixes as text[])) as prefix where starts_with(slot, prefix))))
    select k.knowledge_id, k.lineage_id, k.version, k.kind, k.content, k.actor, k.slot, k.slot_value, k.turn_at,
           k.event_at
      from near join memoryos.knowledge k on k.tenant_id = :tenant_id and k.knowledge_id = near.knowledge_id
     where k.scope_id = :scope_id and k.status = 'active'
""")
LOAD_TRUTHS = text("""
    with concerned as (
        select lineage_id from memoryos.knowledge
         where tenant_id = :tenant_id and scope_id = :scope_id and knowledge_id = any(cast(:ids as uuid[]))
        union
        select lineage_id from memoryos.knowledge
         where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active'
           and (slot = any(cast(:slots as text[]))
                or exists (select from unnest(cast(:prefixes as text[])) as prefix where starts_with(slot, prefix)))
        union
        select lineage_id from memoryos.knowledge
         where tenant_id = :tenant_id and scope_id = :scope_id and status = 'active'
           and content_sha256 = any(cast(:content_keys as bytea[])))
    select k.knowledge_id, k.lineage_id, k.version, k.kind, k.content_sha256 as content_key, k.slot,
           greatest(k.turn_at, (
               select max(t.occurred_at) from memoryos.knowledge_source s
                 join memoryos.turn t on t.tenant_id = s.tenant_id and t.conversation_id = s.conversation_id
                                     and t.seq = s.seq
                where s.tenant_id = k.tenant_id and s.knowledge_id = k.knowledge_id)) as asserted_at,
           k.valid_from, k.valid_to, k.status, k.superseded_by, k.close_reason, k.importance, k.strength_days,
           k.last_reinforced_at, k.pinned_at
      from concerned c
      join memoryos.knowledge k on k.tenant_id = :tenant_id and k.lineage_id = c.lineage_id
     where k.scope_id = :scope_id
     order by k.knowledge_id
       for no key update of k
""")
INSERT = text("""
    insert into memoryos.knowledge (
        tenant_id, knowledge_id, scope_id, lineage_id, version, kind, content, content_sha256, lang, actor, slot,
        slot_value, keywords, attributes, importance, strength_days, last_reinforced_at, forget_at, pinned_at, event_at,
        event_precision, turn_at, valid_from, valid_to, superseded_by, close_reason, status, retired_at, extracted_by,
        work_id, expires_at)
    values (
        :tenant_id, :knowledge_id, :scope_id, :lineage_id, :version, :kind, :content, :content_key, :lang, :actor,
        :slot, :slot_value, :keywords, :attributes, :importance, :strength_days, :last_reinforced_at, :forget_at,
        :pinned_at, :event_at, :event_precision, :turn_at, :valid_from, :valid_to, :superseded_by, :close_reason,
        :status, case when :status <> 'active' then memoryos.now() end, :extracted_by, :work_id,
        memoryos.now() + cast(:ttl_days as double precision) * interval '1 day')
""").bindparams(bindparam("attributes", type_=JSONB))
UPDATE = text("""
    update memoryos.knowledge
       set slot = :slot, valid_from = :valid_from, valid_to = :valid_to, status = :status,
           superseded_by = :superseded_by, close_reason = :close_reason, strength_days = :strength_days,
           last_reinforced_at = :last_reinforced_at, forget_at = :forget_at, forgotten_at = null, purge_at = null,
           retired_at = case when :status = 'active' then null else coalesce(retired_at, memoryos.now()) end
     where tenant_id = :tenant_id and knowledge_id = :knowledge_id
""")
ADD_SOURCES = text("""
    insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
    select :tenant_id, s.knowledge_id, :conversation_id, s.seq, p.page_id
      from unnest(cast(:knowledge_ids as uuid[]), cast(:seqs as bigint[])) as s(knowledge_id, seq)
      join memoryos.page p on p.tenant_id = :tenant_id and p.conversation_id = :conversation_id
                          and s.seq between p.first_seq and p.last_seq
     order by s.knowledge_id, s.seq
    on conflict do nothing
""")


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """Where a scope stands; `lock_version` changes whenever its live knowledge does."""

    extract_ordinal: int
    merged_ordinal: int
    lock_version: int


@dataclass(frozen=True, slots=True)
class PageInLine:
    """The page whose turn it is to be merged. `dead`: its distillation was given up, or the page is gone."""

    ordinal: int
    state: Literal["distilled", "dead", "waiting"]
    page_id: UUID | None = None
    conversation_id: UUID | None = None
    extracted_by: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where new rows come from: their page's conversation, who extracted them, under which work and policy."""

    conversation_id: UUID
    extracted_by: str
    work_id: int
    policy: Policy


def find_scope(connection: Connection, tenant_id: UUID, scope_id: UUID, *, lock: bool = False) -> ScopeRow | None:
    """Return where a scope stands, locked on request; None when it is gone or erased."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id}
    row = connection.execute(LOCK_SCOPE if lock else FIND_SCOPE, values).first()
    return ScopeRow(*row) if row else None


def next_extract_ordinal(connection: Connection, tenant_id: UUID, scope_id: UUID) -> int:
    """Hand out the next place in the merging line; the caller holds the scope's lock."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id}
    return int(connection.execute(NEXT_EXTRACT_ORDINAL, values).scalar_one())


def move_scope(connection: Connection, tenant_id: UUID, scope_id: UUID, *, merged_ordinal: int = 0) -> None:
    """Note that live knowledge changed, and how far merging is; the caller holds the scope's lock."""
    connection.execute(MOVE_SCOPE, {"tenant_id": tenant_id, "scope_id": scope_id, "merged": merged_ordinal})


def find_page_in_line(connection: Connection, tenant_id: UUID, scope_id: UUID, scope: ScopeRow) -> PageInLine | None:
    """Return the page that follows the last merged one; None when all that were handed out are merged."""
    ordinal = scope.merged_ordinal + 1
    if ordinal > scope.extract_ordinal:
        return None
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "ordinal": ordinal}
    row = connection.execute(FIND_TURN_IN_LINE, values).first()
    if row is None or (not row.is_distilled and row.state in {"dead", "cancelled"}):
        return PageInLine(ordinal, "dead", row.page_id if row else None)
    if not row.is_distilled:
        return PageInLine(ordinal, "waiting", row.page_id)
    return PageInLine(ordinal, "distilled", row.page_id, row.conversation_id, row.extracted_by)


def count_live(connection: Connection, tenant_id: UUID, scope_id: UUID) -> int:
    """Return how many rows of a scope are live."""
    return int(connection.execute(COUNT_LIVE, {"tenant_id": tenant_id, "scope_id": scope_id}).scalar_one())


def find_live(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, similarity: dict[UUID, float], slots: SlotQuery
) -> list[Neighbour]:
    """Return the live rows among the keys of `similarity`, and those in these slots (0.0 where not given)."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "ids": list(similarity), **_slot_values(slots)}
    rows = connection.execute(FIND_LIVE, values).all()
    return [Neighbour(**row._mapping, similarity=similarity.get(row.knowledge_id, 0.0)) for row in rows]


def load_truths(
    connection: Connection,
    tenant_id: UUID,
    scope_id: UUID,
    *,
    ids: Iterable[UUID] = (),
    slots: SlotQuery = NO_SLOTS,
    content_keys: Iterable[bytes] = (),
) -> tuple[Truth, ...]:
    """Return every version of the lineages these rows, slots or statements belong to, locked, by id."""
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "ids": sorted(set(ids)),
        **_slot_values(slots),
        "content_keys": sorted(set(content_keys)),
    }
    return tuple(_truth(row) for row in connection.execute(LOAD_TRUTHS, values))


def find_live_rivals(connection: Connection, tenant_id: UUID, scope_id: UUID, row: Truth) -> list[Truth]:
    """Return the live rows that cannot be live beside `row`: its slot, its statement or its lineage is theirs."""
    slots = SlotQuery((row.slot,)) if row.slot is not None else NO_SLOTS
    truths = load_truths(
        connection, tenant_id, scope_id, ids=[row.knowledge_id], slots=slots, content_keys=[row.content_key]
    )
    return [truth for truth in truths if truth.is_live and truth.rules_out(row)]


def update_knowledge(connection: Connection, tenant_id: UUID, *, truths: Sequence[Truth], policy: Policy) -> None:
    """Write the changeable part of rows that exist; content never changes."""
    if truths:
        connection.execute(UPDATE, [{**_columns(truth, policy), "tenant_id": tenant_id} for truth in truths])


def write_plan(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, plan: Plan, candidates: Mapping[int, Candidate],
    origin: Origin,
) -> None:  # fmt: skip
    """Write what a plan retires, then what it adds, then the turns that both stand on."""
    update_knowledge(connection, tenant_id, truths=plan.changed, policy=origin.policy)
    key = {"tenant_id": tenant_id, "scope_id": scope_id}
    new = [{**key, **_new_columns(truth, candidates[n], origin)} for n, truth in plan.added]
    if new:
        connection.execute(INSERT, new)
    cited = [(truth.knowledge_id, n) for n, truth in plan.added] + list(plan.supported)
    sources = [(row_id, seq) for row_id, n in cited for seq in candidates[n].source_seqs]
    add_sources(connection, tenant_id, origin.conversation_id, sources)


def add_sources(
    connection: Connection, tenant_id: UUID, conversation_id: UUID, cited: Sequence[tuple[UUID, int]]
) -> None:
    """Add turns of one conversation as sources (knowledge id, seq); those known, or in no page yet, are left out."""
    values = {
        "tenant_id": tenant_id,
        "conversation_id": conversation_id,
        "knowledge_ids": [knowledge_id for knowledge_id, _ in cited],
        "seqs": [seq for _, seq in cited],
    }
    connection.execute(ADD_SOURCES, values)


def _slot_values(slots: SlotQuery) -> dict[str, list[str]]:
    return {"slots": sorted(set(slots.slots)), "prefixes": sorted(set(slots.prefixes))}


def _truth(row: Row[tuple[object, ...]]) -> Truth:
    return Truth(**{**row._mapping, "content_key": bytes(row.content_key)})


def _columns(truth: Truth, policy: Policy) -> dict[str, Any]:
    names = (
        "knowledge_id", "lineage_id", "version", "kind", "content_key", "slot", "valid_from", "valid_to", "status",
        "superseded_by", "close_reason", "importance", "strength_days", "last_reinforced_at", "pinned_at",
    )  # fmt: skip
    return {**{name: getattr(truth, name) for name in names}, "forget_at": end_of(truth, policy)}


def end_of(truth: Truth, policy: Policy) -> datetime | None:
    """Return when a row is forgotten if nobody reinforces it; None when it is held."""
    hold = forgetting.Hold(
        key=str(truth.knowledge_id),
        strength_days=truth.strength_days,
        last_reinforced_at=truth.last_reinforced_at,
        importance=truth.importance,
        pinned=truth.pinned_at is not None,
    )
    return forgetting.ends_at(hold, policy)


def _new_columns(truth: Truth, candidate: Candidate, origin: Origin) -> dict[str, Any]:
    attributes = {**candidate.attributes, "negated": candidate.negated, "entities": candidate.entities}
    return {
        **_columns(truth, origin.policy),
        "content": candidate.content,
        "lang": candidate.lang,
        "actor": candidate.actor,
        "slot_value": candidate.slot_value,
        "keywords": list(candidate.keywords),
        "attributes": attributes,
        "event_at": candidate.event_at,
        "event_precision": candidate.event_precision,
        "turn_at": candidate.turn_at,
        "extracted_by": origin.extracted_by,
        "work_id": origin.work_id,
        "ttl_days": origin.policy.ttl_days,
    }
