"""Assign pages to segments: what belongs together grows warm together, and hot segments are distilled."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.heat import Heat, Moment, cools_at, cools_at_tick
from memoryos_pipeline.domain.segments import assign_pages
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.models.common_part import CommonParts, common_parts
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.heat import count_user_turns, read_ticks
from memoryos_pipeline.store.ledger import complete, owe
from memoryos_pipeline.store.rollups import refresh_rollups
from memoryos_pipeline.store.segments import (
    UnassignedPage,
    Warmed,
    hand_to_distillation,
    load_segments,
    load_unassigned,
    lock_scope,
    save_segments,
    warm_pages,
)
from memoryos_pipeline.store.vectors import ensure_space

PAGES_PER_RUN = 100


def assign_segments(parts: Parts, lease: Lease) -> None:
    """Assign every page of a scope whose turn it is, in one transaction that waits for nothing.

    Pages go strictly in order: one that is not summarized and indexed yet holds up those behind it, so that
    the segments do not depend on which summary came first. Raises ModelError, StaleReadError and FencedError.
    """
    common = common_parts(parts.embedder)
    with parts.database.transaction(lease.tenant_id) as connection:
        if lock_scope(connection, lease.tenant_id, lease.scope_id):
            governed = parts.under_policy(connection, lease.tenant_id, lease.scope_id)
            _assign(governed, lease, connection, common)
        complete(connection, lease)


def _assign(parts: Parts, lease: Lease, connection: Connection, common: CommonParts) -> None:
    tenant_id, scope_id = lease.tenant_id, lease.scope_id
    space_id = ensure_space(connection, parts.embedder)
    found = load_unassigned(connection, tenant_id, scope_id, space_id=space_id, limit=PAGES_PER_RUN)
    pages = list(takewhile(lambda page: page.is_ready, found))
    if not pages:
        return
    now = read_now(connection)
    segments = load_segments(connection, tenant_id, scope_id, space_id=space_id)
    judged = [replace(each.page, common=common.get(each.lang, common["und"])) for each in pages]
    plan = assign_pages(judged, segments, now=now, policy=parts.policy)
    moment = Moment(now, _ticks(parts, connection, tenant_id, scope_id))
    warmed = _warmed(parts, pages, plan.assigned, moment)
    save_segments(connection, tenant_id, scope_id, space_id=space_id, segments=plan.changed.values())
    warm_pages(connection, tenant_id, warmed=warmed, now=now)
    record_events(connection, tenant_id, [_told(lease, each) for each in warmed])
    hand_to_distillation(connection, lease, handed=plan.handed, max_attempts=parts.max_attempts)
    if parts.policy.rollups == "daily":
        _roll_up(lease, connection, [each.page.page_id for each in pages])
    kinds = [WorkKind.SEGMENT] if len(pages) == PAGES_PER_RUN else []
    if parts.policy.evict != "none" or parts.policy.ticks_by_turn:
        kinds.append(WorkKind.HEAT)
    again = [Owed(kind, str(scope_id), scope_id) for kind in kinds]
    owe(connection, tenant_id, again, max_attempts=parts.max_attempts)


def _ticks(parts: Parts, connection: Connection, tenant_id: UUID, scope_id: UUID) -> int:
    """Return where the scope's clock of heat stands, with the turns the user has said by now."""
    if parts.policy.ticks_by_turn:
        return count_user_turns(connection, tenant_id, scope_id)[0]
    return read_ticks(connection, tenant_id, scope_id)


def _roll_up(lease: Lease, connection: Connection, page_ids: Sequence[UUID]) -> None:
    days = refresh_rollups(connection, lease.tenant_id, lease.scope_id, page_ids=page_ids)
    if days:
        event = Event("rollups_refreshed", lease.scope_id, amount=float(len(days)), work_id=lease.work_id)
        record_events(connection, lease.tenant_id, [event])


def _warmed(
    parts: Parts, pages: Sequence[UnassignedPage], assigned: Sequence[tuple[UUID, UUID]], moment: Moment
) -> list[Warmed]:
    full = Heat(1.0, moment.at, moment.tick)
    by_tick = cools_at_tick(full, parts.policy)
    return [
        Warmed(
            page,
            segment_id,
            cools_at(full, sealed_at=page.sealed_at, policy=parts.policy) if by_tick is None else None,
            moment.tick,
            by_tick,
        )
        for page, (_, segment_id) in zip(pages, assigned, strict=True)
    ]


def _told(lease: Lease, warmed: Warmed) -> Event:
    return Event(
        "page_assigned",
        lease.scope_id,
        subject_id=warmed.page.page.page_id,
        related_id=warmed.segment_id,
        conversation_id=warmed.page.conversation_id,
        seq=warmed.page.last_seq,
        work_id=lease.work_id,
    )
