"""What a piece of work waits for, in words. Pure: what was seen, and when, goes in; a sentence part comes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memoryos_pipeline.domain.work import QUEUE_OF_KIND, WorkKind

SILENT = timedelta(seconds=30)
"""A process that has not shown itself for this long is not counted on."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a work row stands, as the ledger has it."""

    work_id: int
    kind: str
    state: str
    attempts: int
    max_attempts: int
    run_after: datetime
    lease_until: datetime | None = None
    owner: str | None = None
    enqueued_at: datetime | None = None
    last_error_class: str | None = None


@dataclass(frozen=True, slots=True)
class Sightings:
    """When processes were last seen, by the wall clock of the database; None is never.

    `queue_at` is when anything of the queue was last begun or ended; None says nothing. `paused` has the reason of
    each kind that nobody may take.
    """

    now: datetime
    relay_at: datetime | None = None
    worker_at: datetime | None = None
    queue_at: datetime | None = None
    on_hold: bool = False
    paused: Mapping[str, str] = field(default_factory=dict)


def queue_of(kind: str) -> str:
    """Return the queue that delivers a kind; a kind of newer code is its own."""
    return QUEUE_OF_KIND[WorkKind(kind)] if kind in set(WorkKind) else kind


def waits_for(work: Standing, seen: Sightings) -> str:
    """Return what a work row waits for, e.g. `waits for its next try at 2026-05-04 09:00:10 UTC, ...`."""
    if work.state == "leased":
        return _leased(work, seen)
    if work.state == "ready":
        return _ready(work, seen)
    if work.state == "dead":
        return (
            f"given up after {work.attempts} of {work.max_attempts} tries ({work.last_error_class or 'no reason'}); "
            f"`memoryos dead replay {work.work_id}` tries again"
        )
    if work.run_after > seen.now and work.state == "done":
        why = "the tenant is on hold" if seen.on_hold else "brake"
        return f"resting until {moment(work.run_after)} ({why}); a new need wakes it at once"
    return "nothing: it was discarded" if work.state == "cancelled" else "nothing: it is done"


def moment(at: datetime) -> str:
    """Write a moment to the second, in UTC; `at` is aware and from the database."""
    offset = at.utcoffset() or timedelta()
    return f"{(at - offset).replace(tzinfo=None):%Y-%m-%d %H:%M:%S} UTC"


def duration(length: timedelta) -> str:
    """Write a length of time in its largest sensible unit."""
    seconds = max(0, round(length.total_seconds()))
    for name, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def _leased(work: Standing, seen: Sightings) -> str:
    until = work.lease_until or seen.now
    if until >= seen.now:
        return f"leased by {work.owner or 'an unnamed worker'} until {moment(until)}"
    relay = _absence("the relay", seen.relay_at, seen.now)
    return f"its lease by {work.owner or 'an unnamed worker'} ran out at {moment(until)}; waits for {relay}"


def _ready(work: Standing, seen: Sightings) -> str:
    if work.attempts >= work.max_attempts:
        return f"no try is left; waits for {_absence('the relay', seen.relay_at, seen.now)} to bury it"
    if work.kind in seen.paused:
        reason = seen.paused[work.kind]
        return f"waits for an operator: {work.kind} work is paused ({reason}); `memoryos work resume {work.kind}`"
    if work.kind not in set(WorkKind):
        return f"waits for newer code: nobody here knows {work.kind} work; update relay and workers"
    if work.run_after > seen.now:
        after = f", after a failure ({work.last_error_class})" if work.last_error_class else ""
        wait = duration(work.run_after - seen.now)
        return f"waits for its {'next try' if after else 'time'} at {moment(work.run_after)}, in {wait}{after}"
    return f"waits for {_doorbell(work, seen)}"


def _doorbell(work: Standing, seen: Sightings) -> str:
    whose = f"a worker of queue {queue_of(work.kind)}"
    worker = _absence(whose, seen.worker_at, seen.now)
    if work.enqueued_at is None:
        relay = _absence("the relay", seen.relay_at, seen.now)
        return relay if worker == whose else f"{relay}, and for {worker}"
    rung = f"rung for at {moment(work.enqueued_at)}"
    if worker == whose and seen.queue_at and seen.queue_at < work.enqueued_at < seen.now - SILENT:
        return f"{whose}, {rung}: workers live, but none has taken anything of this queue since {moment(seen.queue_at)}"
    return f"{worker}, {rung}" if worker == whose else f"{worker} ({rung})"


def _absence(whose: str, seen_at: datetime | None, now: datetime) -> str:
    """Return `whose`, and for how long nobody has seen it when that is too long."""
    if seen_at is None:
        return f"{whose}: none has been seen"
    return f"{whose}: none has been seen for {duration(now - seen_at)}" if now - seen_at > SILENT else whose
