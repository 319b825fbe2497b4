"""How far a conversation has travelled: contiguous prefixes by stage, and what each stage waits for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memoryos_pipeline.domain.waiting import Sightings, Standing, moment, waits_for

STAGES = ("recorded", "sealed", "summarized", "embedded", "segmented", "distilled", "merged")
"""The watermarks, in the order a turn passes them."""

# A page that merging was given up for was passed over: it is not merged before somebody replays it.
MARKS = text("""
    with set_aside as materialized (
        select subject_key from memoryos.work
         where tenant_id = :tenant_id and kind = 'merge_page' and state in ('ready', 'leased', 'dead')
    )
    select c.scope_id, c.next_seq - 1 as recorded, c.sealed_through as sealed,
           coalesce(p.summarized, c.sealed_through) as summarized,
           greatest(coalesce(p.embedded, c.sealed_through), c.ahead_through) as embedded,
           coalesce(p.segmented, c.sealed_through) as segmented, coalesce(p.distilled, c.sealed_through) as distilled,
           coalesce(p.merged, c.sealed_through) as merged, s.merged_ordinal
      from memoryos.conversation c
      join memoryos.scope s on s.tenant_id = c.tenant_id and s.scope_id = c.scope_id
      cross join lateral (
           select min(first_seq) filter (where summarized_at is null) - 1 as summarized,
                  min(first_seq) filter (where indexed_at is null) - 1 as embedded,
                  min(first_seq) filter (where assigned_at is null and extract_ordinal is null) - 1 as segmented,
                  min(first_seq) filter (where extracted_at is null) - 1 as distilled,
                  min(first_seq) filter (where extracted_at is null or extract_ordinal is null
                                            or extract_ordinal > s.merged_ordinal
                                            or cast(page_id as text) in (select subject_key from set_aside)) - 1
                      as merged
             from memoryos.page where tenant_id = c.tenant_id and conversation_id = c.conversation_id) p
     where c.tenant_id = :tenant_id and c.conversation_id = :conversation_id
""")
PAGES = text("""
    select page_id, first_seq, summarized_at is not null as is_summarized, extract_ordinal, cools_at,
           extracted_at is not null as is_distilled,
           exists (select from memoryos.work w
                    where w.tenant_id = page.tenant_id and w.kind = 'merge_page'
                      and w.subject_key = cast(page.page_id as text)
                      and w.state in ('ready', 'leased', 'dead')) as is_set_aside
      from memoryos.page
     where tenant_id = :tenant_id and conversation_id = :conversation_id
       and first_seq = any(cast(:firsts as bigint[]))
""")
WORK = text("""
    select w.kind, w.subject_key, w.work_id, w.state, w.attempts, w.max_attempts, w.run_after, w.lease_until, w.owner,
           w.enqueued_at, w.last_error_class
      from unnest(cast(:kinds as text[]), cast(:subjects as text[])) asked(kind, subject_key)
      join memoryos.work w on w.tenant_id = :tenant_id and w.kind = asked.kind and w.subject_key = asked.subject_key
""")
SIGHTINGS = text("""
    select clock_timestamp() as now, (select max(beat_at) from memoryos.heartbeat where role = 'relay') as relay_at,
           (select max(beat_at) from memoryos.heartbeat where role = 'worker') as worker_at,
           (select max(coalesce(finished_at, case when state = 'leased' then clock_timestamp() end)) from memoryos.work
             where tenant_id = :tenant_id and kind = any(cast(:kinds as text[]))) as queue_at,
           coalesce((select on_hold from memoryos.tenant where tenant_id = :tenant_id), false) as on_hold,
           coalesce((select jsonb_object_agg(kind, reason) from memoryos.paused_kind), '{}') as paused
""")
# A turn beyond indexed_through is read by every search as it stands; what is sealed and not indexed is found by its
# words but not by its meaning.
BEHIND = text("""
    select pg_visible_in_snapshot(cast(:position as xid8), pg_current_snapshot()) as is_recorded,
           cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as position,
           (select count(*)
              from memoryos.conversation c
              join memoryos.page p on p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id
                                  and p.indexed_at is null
              join memoryos.turn t on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id
                                  and t.seq between p.first_seq and p.last_seq
             where c.tenant_id = :tenant_id and c.scope_id = :scope_id and c.indexed_through < c.next_seq - 1
               and t.seq > c.ahead_through and t.kind = 'normal'
               and t.position <= cast(:position as xid8)) as unindexed_turns
""")

Key = tuple[str, str]
"""Kind and subject of a work row."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """How far each stage of STAGES is (`through` a seq, without a gap), and what those that lag wait for."""

    through: Mapping[str, int]
    waits_for: Mapping[str, str | None] = field(default_factory=dict)
    sealing_owed: bool = False


@dataclass(frozen=True, slots=True)
class Behind:
    """What a read would miss of turns up to a position."""

    is_recorded: bool
    position: int
    unindexed_turns: int


def read_watermarks(connection: Connection, tenant_id: UUID, conversation_id: UUID) -> Watermarks | None:
    """Return the watermarks of a conversation; None when there is no such conversation."""
    key = {"tenant_id": tenant_id, "conversation_id": conversation_id}
    row = connection.execute(MARKS, key).first()
    if row is None:
        return None
    through = {stage: int(getattr(row, stage)) for stage in STAGES}
    firsts = sorted({seq + 1 for stage, seq in through.items() if stage != "recorded" and seq < row.sealed})
    pages = {page.first_seq: page for page in connection.execute(PAGES, {**key, "firsts": firsts})}
    lagging = {stage: pages.get(through[stage] + 1) for stage in STAGES[2:] if through[stage] < row.sealed}
    keys = {stage: _key(stage, page, row) for stage, page in lagging.items()}
    advance = ("advance", str(conversation_id))
    work = read_standings(connection, tenant_id, [advance, *(key for key in keys.values() if key)])
    told = _Teller(read_sightings(connection, tenant_id), work, row)
    waits = {stage: told.stage(stage, keys[stage], page) for stage, page in lagging.items()}
    owed = advance in work and work[advance].state in {"ready", "leased", "dead"}
    return Watermarks(through, {**dict.fromkeys(STAGES), "sealed": told.sealing(advance), **waits}, owed)


def read_standings(connection: Connection, tenant_id: UUID, keys: Iterable[Key]) -> dict[Key, Standing]:
    """Return where the work rows of these kinds and subjects stand; those that do not exist are left out."""
    asked = sorted(set(keys))
    values = {"tenant_id": tenant_id, "kinds": [kind for kind, _ in asked], "subjects": [key for _, key in asked]}
    return {(row.kind, row.subject_key): _standing(row) for row in connection.execute(WORK, values)}


def read_sightings(connection: Connection, tenant_id: UUID, *, kinds: Iterable[str] = ()) -> Sightings:
    """Return when relay and workers were last seen, and when work of these kinds last moved."""
    row = connection.execute(SIGHTINGS, {"tenant_id": tenant_id, "kinds": list(kinds)}).one()
    return Sightings(row.now, row.relay_at, row.worker_at, row.queue_at, row.on_hold, row.paused)


def read_behind(connection: Connection, tenant_id: UUID, scope_id: UUID, *, position: int) -> Behind:
    """Return what a read of a scope would miss of turns up to a position."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "position": str(position)}
    return Behind(*connection.execute(BEHIND, values).one())


def _standing(row: Row[Any]) -> Standing:
    return Standing(
        row.work_id, row.kind, row.state, row.attempts, row.max_attempts, row.run_after,
        row.lease_until, row.owner, row.enqueued_at, row.last_error_class,
    )  # fmt: skip


def _key(stage: str, page: Row[Any] | None, row: Row[Any]) -> Key | None:
    """Return the work that would move the first page a stage has not passed; None when no work is owed for it yet."""
    if page is None:
        return None
    if stage == "embedded":
        return "embed", f"turns:{page.page_id}"
    if not page.is_summarized:
        return "summarize", str(page.page_id)
    if stage == "segmented":
        return "segment", str(row.scope_id)
    return None if page.extract_ordinal is None else _knowledge_key(page, row)


def _knowledge_key(page: Row[Any], row: Row[Any]) -> Key:
    if not page.is_distilled:
        return "distill", str(page.page_id)
    return ("merge_page", str(page.page_id)) if page.is_set_aside else ("merge", str(row.scope_id))


class _Teller:
    """Puts the work of stages into words."""

    def __init__(self, seen: Sightings, work: Mapping[Key, Standing], row: Row[Any]) -> None:
        self._seen = seen
        self._work = work
        self._row = row

    def sealing(self, advance: Key) -> str | None:
        """Return what the open tail waits for; None when there is none."""
        hot = self._row.recorded - self._row.sealed
        work = self._work.get(advance)
        if hot and work and work.state in {"ready", "leased", "dead"}:
            return f"advance work {work.work_id}: {waits_for(work, self._seen)}"
        return f"more turns, a silence or the end of the conversation: {hot} turns are hot" if hot else None

    def stage(self, stage: str, key: Key | None, page: Row[Any] | None) -> str:
        """Return what the first page a stage has not passed waits for."""
        if page is None:
            return f"nobody: no page begins after turn {getattr(self._row, stage)}; run `memoryos doctor`"
        whose = f"page {page.page_id} (from turn {page.first_seq})"
        if key is None:
            return f"{whose} {_warmth(page.cools_at)}"
        work = self._work.get(key)
        if work is None:
            return f"{whose}: nobody, no {key[0]} work is owed; run `memoryos doctor --repair`"
        if work.state == "done" and work.run_after <= self._seen.now:
            return f"{whose}: an earlier page of this memory; pages are taken in their order"
        place = f", {page.extract_ordinal} in line behind {self._row.merged_ordinal}" if key[0] == "merge" else ""
        return f"{whose}{place}: {key[0]} work {work.work_id} {waits_for(work, self._seen)}"


def _warmth(cools_at: datetime | None) -> str:
    if cools_at is None:
        return "waits for its segment before it can be distilled"
    return f"is warm: it is distilled when it cools ({moment(cools_at)} if nobody reads it) or its segment grows hot"
