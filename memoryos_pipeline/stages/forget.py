"""Forget: take what has faded out of every search, and delete it when its grace is over; stop when it is too much."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.forgetting import HOUR_SECONDS, is_braked
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.forecasts import keep_forecast
from memoryos_pipeline.store.forgetting import (
    Assessment,
    assess,
    end_overflow,
    forget_due,
    last_brake,
    purge_due,
    release_turns,
)
from memoryos_pipeline.store.knowledge import find_scope, move_scope
from memoryos_pipeline.store.ledger import complete, hold, rest
from memoryos_pipeline.store.rollups import drop_left

BATCH_ROWS = 500


@dataclass(frozen=True, slots=True)
class Preview:
    """What a sweep of a scope would do now. A sweep that is braked, or a tenant on hold, deletes nothing."""

    assessment: Assessment
    braked: bool

    @property
    def stops(self) -> bool:
        """Whether nothing would be deleted."""
        return self.braked or self.assessment.on_hold


def forget(parts: Parts, lease: Lease) -> None:
    """Forget and purge what is due in the scope, in batches of 500, each a fenced transaction.

    Raises FencedError when the lease was lost; what was committed before stays.
    """
    with parts.database.transaction(lease.tenant_id) as connection:
        keep_forecast(connection, lease.tenant_id, lease.scope_id, default=parts.policy)
        parts = parts.under_policy(connection, lease.tenant_id, lease.scope_id)
        if parts.policy.knowledge_capacity is not None:
            end_overflow(connection, lease.tenant_id, lease.scope_id, policy=parts.policy)
        preview = preview_forgetting(parts, connection, lease.tenant_id, lease.scope_id)
        if preview.stops:
            _alarm(lease, connection, preview)
            complete(connection, lease)
            rest(connection, lease, seconds=parts.policy.forget_brake_rest_hours * HOUR_SECONDS)
            return
    _in_batches(parts, lease, partial(_forget_batch, parts, lease))
    _in_batches(parts, lease, partial(_purge_batch, lease))
    with parts.database.transaction(lease.tenant_id) as connection:
        if find_scope(connection, lease.tenant_id, lease.scope_id, lock=True):
            release_turns(connection, lease.tenant_id, lease.scope_id)
            if parts.policy.rollups == "daily":
                drop_left(connection, lease.tenant_id, lease.scope_id)
        complete(connection, lease)


def preview_forgetting(parts: Parts, connection: Connection, tenant_id: UUID, scope_id: UUID) -> Preview:
    """Return what `forget` would do to a scope at this moment under its policy; changes nothing."""
    parts = parts.under_policy(connection, tenant_id, scope_id)
    assessment = assess(connection, tenant_id, scope_id)
    braked = is_braked(
        assessment.due_rows,
        assessment.live_rows,
        share=parts.policy.forget_brake_share,
        min_rows=parts.policy.forget_brake_min_rows,
    )
    return Preview(assessment, braked)


def _alarm(lease: Lease, connection: Connection, preview: Preview) -> None:
    """Say that the brake is on: once a day, and whenever the amount changes."""
    amount = float(preview.assessment.due_rows)
    if preview.braked and last_brake(connection, lease.tenant_id, lease.scope_id) != amount:
        event = Event("forget_braked", lease.scope_id, subject_id=lease.scope_id, amount=amount, work_id=lease.work_id)
        record_events(connection, lease.tenant_id, [event])


def _in_batches(parts: Parts, lease: Lease, batch: Callable[[Connection], int]) -> None:
    is_full = True
    while is_full:
        with parts.database.transaction(lease.tenant_id) as connection:
            done = batch(connection) if find_scope(connection, lease.tenant_id, lease.scope_id, lock=True) else 0
            is_full = done == BATCH_ROWS
            hold(connection, lease)


def _forget_batch(parts: Parts, lease: Lease, connection: Connection) -> int:
    due, forgotten = forget_due(
        connection, lease.tenant_id, lease.scope_id, limit=BATCH_ROWS, grace_days=parts.policy.forget_grace_days
    )
    reach("after_tombstone", "forget")
    if forgotten:
        release_turns(connection, lease.tenant_id, lease.scope_id)
        move_scope(connection, lease.tenant_id, lease.scope_id)
        _record(lease, connection, "knowledge_forgotten", forgotten)
    return due


def _purge_batch(lease: Lease, connection: Connection) -> int:
    # First: once a row is purged nobody knows any more which turns it stood on.
    release_turns(connection, lease.tenant_id, lease.scope_id)
    purged = purge_due(connection, lease.tenant_id, lease.scope_id, limit=BATCH_ROWS)
    _record(lease, connection, "knowledge_purged", purged)
    return len(purged)


def _record(lease: Lease, connection: Connection, kind: str, ids: Sequence[UUID]) -> None:
    events = [Event(kind, lease.scope_id, subject_id=each, work_id=lease.work_id) for each in ids]
    record_events(connection, lease.tenant_id, events)
