"""Apply heat: let accesses warm what was read, and let what nobody reads cool down."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.eviction import WarmUnit, plan_eviction
from memoryos_pipeline.domain.forgetting import Hold, ends_at, is_new_hour, strengthened
from memoryos_pipeline.domain.heat import (
    Cooled,
    Heat,
    Moment,
    cools_at,
    cools_at_tick,
    decide_cooled,
    first_of_each_hour,
    heat_at,
    is_pinned,
    touch_at,
)
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.segments import Handed, visit_segments
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.heat import (
    Access,
    LiveKnowledge,
    Reinforced,
    WarmPage,
    advance_ticks,
    archive_pages,
    cool_by_tick,
    count_user_turns,
    count_warm_pages,
    find_pages_of_turns,
    find_segments_of_pages,
    load_accesses,
    load_cold_pages,
    load_every_warm_page,
    load_warm_pages,
    lock_live_knowledge,
    lock_touched_pages,
    mark_applied,
    read_ticks,
    reinforce,
    save_page_heat,
    set_cooling,
)
from memoryos_pipeline.store.ledger import complete, hold, owe
from memoryos_pipeline.store.recallable import mark_left_turns
from memoryos_pipeline.store.rollups import drop_left
from memoryos_pipeline.store.segments import (
    hand_to_distillation,
    load_segments,
    lock_conversations,
    lock_scope,
    save_segments,
)
from memoryos_pipeline.store.vectors import ensure_space, remove_index_rows

ACCESSES_PER_RUN = 2_000
COLD_PAGES_PER_RUN = 500
LOOK_AGAIN = timedelta(hours=1)
"""A cold page whose distillation is under way is looked at again after this long."""


@dataclass(frozen=True)
class _Run:
    """One run under the scope's lock."""

    parts: Parts
    lease: Lease
    connection: Connection
    now: datetime
    space_id: int
    ticks: int
    """Where the scope's clock of heat stood before this run."""


@dataclass
class _Visits:
    """Which retrievals visited a segment, and when the last one did."""

    retrievals: set[UUID] = field(default_factory=set)
    moments: list[datetime] = field(default_factory=list)


def apply_heat(parts: Parts, lease: Lease) -> None:
    """Apply what waits in one scope and settle the pages that are cold, in one transaction; then make room, if asked.

    Raises FencedError when the lease was lost; nothing is written then.
    """
    with parts.database.transaction(lease.tenant_id) as connection:
        run = _open(parts, lease, connection)
        is_done = run is None or run.parts.policy.evict == "none"
        if run is not None and any([_apply_accesses(run), _settle_cold_pages(run)]):
            again = Owed(WorkKind.HEAT, lease.subject_key, lease.scope_id)
            owe(connection, lease.tenant_id, [again], max_attempts=parts.max_attempts)
        (complete if is_done else hold)(connection, lease)
    if is_done:
        return
    with parts.database.transaction(lease.tenant_id) as connection:
        run = _open(parts, lease, connection)
        if run is not None:
            _make_room(run)
        complete(connection, lease)


def _open(parts: Parts, lease: Lease, connection: Connection) -> _Run | None:
    """Lock the scope and read where it stands; None when it is gone."""
    if not lock_scope(connection, lease.tenant_id, lease.scope_id):
        return None
    space_id = ensure_space(connection, parts.embedder)
    governed = parts.under_policy(connection, lease.tenant_id, lease.scope_id)
    ticks = read_ticks(connection, lease.tenant_id, lease.scope_id)
    return _Run(governed, lease, connection, read_now(connection), space_id, ticks)


def _apply_accesses(run: _Run) -> bool:
    """Apply waiting accesses; tell whether there may be more."""
    tenant_id, scope_id = run.lease.tenant_id, run.lease.scope_id
    accesses = load_accesses(run.connection, tenant_id, scope_id, limit=ACCESSES_PER_RUN)
    clock = _Clock(run, accesses)
    counted = [access for access in accesses if access.cause in run.parts.policy.counted_causes]
    by_page = _by_page(run, counted)
    lock_touched_pages(run.connection, tenant_id, scope_id, page_ids=by_page)
    pages = load_warm_pages(run.connection, tenant_id, scope_id, page_ids=by_page)
    warming = {page.page_id: clock.counted(page, by_page.get(page.page_id, [])) for page in pages}
    _warm_pages(clock, pages, warming)
    _visit(run, counted, warming)
    _reinforce(run, [access for access in counted if access.owner_kind == "knowledge"])
    mark_applied(run.connection, tenant_id, accesses)
    clock.save()
    return len(accesses) == ACCESSES_PER_RUN


def _by_page(run: _Run, accesses: Iterable[Access]) -> dict[UUID, list[Access]]:
    """Group accesses by the page they touch: the page itself or one of its turns."""
    touching = [access for access in accesses if access.owner_kind in {"page", "turn"}]
    turns = {access.owner_id for access in touching if access.owner_kind == "turn"}
    page_of_turn = find_pages_of_turns(run.connection, run.lease.tenant_id, turns) if turns else {}
    grouped: dict[UUID, list[Access]] = {}
    for access in touching:
        page_id = access.owner_id if access.owner_kind == "page" else page_of_turn.get(access.owner_id)
        if page_id is not None:
            grouped.setdefault(page_id, []).append(access)
    return grouped


class _Clock:
    """The clocks of heat while accesses are applied: by query every retrieval is a tick, in the order they came.

    By turn the ticks are those of the user, and an access is in the tick of what was said last before it.
    """

    def __init__(self, run: _Run, accesses: Sequence[Access]) -> None:
        self.run = run
        self.policy = run.parts.policy
        key = (run.connection, run.lease.tenant_id, run.lease.scope_id)
        self._later: list[datetime] = []
        self._tick: dict[UUID, int] = {}
        if self.policy.ticks_by_turn:
            since = min((access.at for access in accesses), default=None)
            ticks, self._later = count_user_turns(*key, since=since)
        else:
            retrievals = dict.fromkeys(access.retrieval_id for access in accesses)
            self._tick = {each: run.ticks + n for n, each in enumerate(retrievals, start=1)}
            ticks = run.ticks + len(retrievals)
        self.now = Moment(run.now, ticks)

    def moment_of(self, access: Access) -> Moment:
        """Return when an access was, on both clocks."""
        if self.policy.ticks_by_turn:
            said_since = len(self._later) - bisect_right(self._later, access.at)
            return Moment(access.at, self.now.tick - said_since)
        return Moment(access.at, self._tick[access.retrieval_id])

    def counted(self, page: WarmPage, accesses: Sequence[Access]) -> list[Access]:
        """Return the accesses that warm a page: by time one an hour at most, by tick one a tick."""
        if self.policy.heat == "ema_tick":
            by_tick = {self.moment_of(access).tick: access for access in reversed(accesses)}
            ended = page.heat_tick if self.policy.tick == "turn" else -1
            return [by_tick[tick] for tick in sorted(by_tick) if tick > ended]
        first = {access.at: access for access in reversed(accesses)}
        return [first[moment] for moment in first_of_each_hour(page.heat_at, first)]

    def save(self) -> None:
        """Move the scope's clock on, and let pages cool whose tick has come."""
        if self.policy.heat != "ema_tick":
            return
        key = (self.run.connection, self.run.lease.tenant_id, self.run.lease.scope_id)
        if self._tick:
            advance_ticks(*key, count=len(self._tick))
        if self._tick or self.policy.tick == "turn":
            cool_by_tick(*key, ticks=self.now.tick, min_age_hours=self.policy.min_warm_age_hours)


def _warm_pages(clock: _Clock, pages: Sequence[WarmPage], warming: dict[UUID, list[Access]]) -> None:
    run = clock.run
    after = {page: _warmed(clock, page, warming[page.page_id]) for page in pages}
    changed = {page: new for page, new in after.items() if new != page}
    save_page_heat(run.connection, run.lease.tenant_id, list(changed.values()))
    pins = [
        _told(run, "page_pinned" if new.pinned else "page_unpinned", new, clock.now)
        for page, new in changed.items()
        if new.pinned != page.pinned
    ]
    record_events(run.connection, run.lease.tenant_id, pins)


def _warmed(clock: _Clock, page: WarmPage, accesses: Sequence[Access]) -> WarmPage:
    policy = clock.policy
    heat = _heat(page)
    for access in accesses:
        heat = touch_at(heat, clock.moment_of(access), policy)
    value = heat_at(heat, clock.now, policy)
    pinned = (page.pinned or bool(accesses)) and is_pinned(value, was_pinned=page.pinned, policy=policy)
    warmer = replace(page, heat=heat.value, heat_at=heat.at, heat_tick=heat.tick, pinned=pinned)
    if not accesses:
        return warmer
    by_tick = cools_at_tick(heat, policy)
    by_time = cools_at(heat, sealed_at=page.sealed_at, policy=policy) if by_tick is None else None
    return replace(warmer, cools_at=by_time, cools_at_tick=by_tick, visits=page.visits + len(accesses))


def _heat(page: WarmPage) -> Heat:
    return Heat(page.heat, page.heat_at, page.heat_tick)


def _visit(run: _Run, accesses: Iterable[Access], warming: dict[UUID, list[Access]]) -> None:
    visits: dict[UUID, _Visits] = {}
    touched = [page_id for page_id, counted in warming.items() if counted]
    pairs = find_segments_of_pages(run.connection, run.lease.tenant_id, touched) if touched else []
    of_pages = [(segment_id, access) for page_id, segment_id in pairs for access in warming[page_id]]
    direct = [(access.owner_id, access) for access in accesses if access.owner_kind == "segment"]
    for segment_id, access in (*of_pages, *direct):
        visit = visits.setdefault(segment_id, _Visits())
        visit.retrievals.add(access.retrieval_id)
        visit.moments.append(access.at)
    if visits:
        _save_visits(run, visits)


def _save_visits(run: _Run, visits: dict[UUID, _Visits]) -> None:
    tenant_id, scope_id = run.lease.tenant_id, run.lease.scope_id
    segments = load_segments(run.connection, tenant_id, scope_id, space_id=run.space_id, only=list(visits))
    counted = [
        (segment, len(visit.retrievals), max(visit.moments))
        for segment, visit in ((each, visits[each.segment_id]) for each in segments)
    ]
    plan = visit_segments(counted, now=run.now, policy=run.parts.policy)
    save_segments(run.connection, tenant_id, scope_id, space_id=run.space_id, segments=plan.changed.values())
    hand_to_distillation(run.connection, run.lease, handed=plan.handed, max_attempts=run.parts.max_attempts)


def _reinforce(run: _Run, accesses: Sequence[Access]) -> None:
    tenant_id, scope_id = run.lease.tenant_id, run.lease.scope_id
    moments: dict[UUID, list[datetime]] = {}
    for access in accesses:
        moments.setdefault(access.owner_id, []).append(access.at)
    if not moments:
        return
    known = lock_live_knowledge(run.connection, tenant_id, scope_id, knowledge_ids=moments)
    reinforced = [
        _reinforced(run, each, first_of_each_hour(each.last_reinforced_at, moments[each.knowledge_id]))
        for each in known
        if any(is_new_hour(each.last_reinforced_at, at) for at in moments[each.knowledge_id])
    ]
    reinforce(run.connection, tenant_id, reinforced)
    told = [
        Event(
            "knowledge_reinforced",
            scope_id,
            subject_id=each.knowledge_id,
            amount=each.strength_days,
            work_id=run.lease.work_id,
        )
        for each in reinforced
    ]
    record_events(run.connection, tenant_id, told)


def _reinforced(run: _Run, knowledge: LiveKnowledge, moments: Sequence[datetime]) -> Reinforced:
    strength = strengthened(knowledge.strength_days, run.parts.policy, times=len(moments))
    hold = Hold(
        key=str(knowledge.knowledge_id),
        strength_days=strength,
        last_reinforced_at=moments[-1],
        importance=knowledge.importance,
        pinned=knowledge.pinned,
        w0=knowledge.w0,
    )
    return Reinforced(knowledge.knowledge_id, strength, moments[-1], ends_at(hold, run.parts.policy))


def _settle_cold_pages(run: _Run) -> bool:
    """Decide about pages whose moment has come; tell whether there may be more."""
    tenant_id = run.lease.tenant_id
    cold = load_cold_pages(run.connection, tenant_id, run.lease.scope_id, limit=COLD_PAGES_PER_RUN)
    fates: dict[Cooled, list[WarmPage]] = {fate: [] for fate in Cooled}
    for page in cold:
        fate = decide_cooled(handed=page.handed, extracted=page.extracted, policy=run.parts.policy)
        fates[fate].append(page)
    waiting = fates[Cooled.WAIT]
    handled = [page for page in cold if page not in waiting]
    # Indexing a page's turns holds its conversation, so that it does not put back what archiving takes out.
    lock_conversations(run.connection, tenant_id, {page.conversation_id for page in fates[Cooled.ARCHIVE]})
    set_cooling(run.connection, tenant_id, {page.page_id: None for page in handled})
    set_cooling(run.connection, tenant_id, {page.page_id: run.now + LOOK_AGAIN for page in waiting})
    record_events(run.connection, tenant_id, [_told(run, "page_cooled", page) for page in handled])
    handed = [Handed(page.page_id, None, "cooled") for page in fates[Cooled.DISTILL]]
    hand_to_distillation(run.connection, run.lease, handed=handed, max_attempts=run.parts.max_attempts)
    _archive(run, fates[Cooled.ARCHIVE])
    return len(cold) == COLD_PAGES_PER_RUN


def _archive(run: _Run, pages: Sequence[WarmPage]) -> None:
    tenant_id = run.lease.tenant_id
    page_ids = [page.page_id for page in pages]
    archive_pages(run.connection, tenant_id, page_ids)
    remove_index_rows(run.connection, tenant_id, "page", page_ids)
    # Knowledge may have been forgotten before; then this is when its turns leave recall.
    left = mark_left_turns(run.connection, tenant_id, page_ids)
    remove_index_rows(run.connection, tenant_id, "turn", left)
    if left and run.parts.policy.rollups == "daily":
        drop_left(run.connection, tenant_id, run.lease.scope_id)
    record_events(run.connection, tenant_id, [_told(run, "page_archived", page) for page in pages])


def _make_room(run: _Run) -> None:
    """Evict what is too much: archive what has been distilled, distill the rest first."""
    tenant_id, scope_id, policy = run.lease.tenant_id, run.lease.scope_id, run.parts.policy
    if count_warm_pages(run.connection, tenant_id, scope_id) <= policy.warm_capacity_pages:
        return
    warm = load_every_warm_page(run.connection, tenant_id, scope_id)
    pages = {page.page_id: page for page, _ in warm}
    units = [_unit(page, segment_heat, Moment(run.now, run.ticks), policy) for page, segment_heat in warm]
    plan = plan_eviction(units, now=run.now, policy=policy)
    given = [pages[page_id] for page_id in (*plan.archive, *plan.extract_first)]
    # Conversations before their pages, like everybody who locks both.
    lock_conversations(run.connection, tenant_id, {page.conversation_id for page in given})
    record_events(run.connection, tenant_id, [_told(run, "page_evicted", page) for page in given])
    handed = [Handed(page_id, None, "evicted") for page_id in plan.extract_first]
    hand_to_distillation(run.connection, run.lease, handed=handed, max_attempts=run.parts.max_attempts)
    _archive(run, [pages[page_id] for page_id in plan.archive])


def _unit(page: WarmPage, segment_heat: float, moment: Moment, policy: Policy) -> WarmUnit:
    # The heat that moves pages under this policy: the two are never mixed.
    heat = segment_heat if policy.distill_when == "heated" else heat_at(_heat(page), moment, policy)
    return WarmUnit(
        page.page_id,
        heat,
        page.visits,
        page.sealed_at,
        pinned=page.pinned,
        handed=page.handed,
        extracted=page.extracted,
    )


def _told(run: _Run, kind: str, page: WarmPage, moment: Moment | None = None) -> Event:
    return Event(
        kind,
        run.lease.scope_id,
        subject_id=page.page_id,
        conversation_id=page.conversation_id,
        amount=heat_at(_heat(page), moment or Moment(run.now, run.ticks), run.parts.policy),
        work_id=run.lease.work_id,
    )
