"""The one envelope around every stage: claim, run, and say what became of it. Stages know nothing of it."""

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from uuid import UUID

import structlog
from billiard.common import terminate_handler_fired
from celery import Task, current_task

from memoryos_pipeline.domain.errors import FencedError, MemoryosError
from memoryos_pipeline.domain.work import ErrorClass, Lease, decide_retry
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.pipeline import QUARANTINES, STAGES, Batch, batch_of
from memoryos_pipeline.store.database import is_passing, sqlstate_of
from workers.masking import mask_id
from workers.runtime import FENCED, Runtime, get_runtime

log = structlog.get_logger("workers.envelope")
MAX_IDS = 100
VANISHED = "the worker vanished on every attempt"

stopping = threading.Event()
"""Set when this process was asked to stop: no further row is begun."""


class WorkTask(Task):  # type: ignore[misc]
    """Base of every task: late ack, no result, and nothing printable but work ids."""

    Request = "workers.masking:MaskedRequest"
    acks_late = True
    ignore_result = True


def deliver(work_ids: object) -> None:
    """Do the work rows a message names. Rows that are not due, or not ours, are left without a word.

    Rows that vanished with their last worker come after all others, and each is held alone: if it is what kills a
    process, it takes nothing else along, and is given up alone.
    """
    runtime = get_runtime()
    for work_id in _deliver_some(runtime, _clean(work_ids)):
        if stopping.is_set():
            return
        _deliver_some(runtime, [work_id])


def _deliver_some(runtime: Runtime, work_ids: list[int]) -> list[int]:
    """Do rows, of those that vanished the first; return the others of them, handed back to be claimed one by one."""
    leases = _claim(runtime, work_ids)
    runtime.keeper.take(leases)
    suspects = [lease for lease in leases if lease.vanished]
    fresh = _in_turns([lease for lease in leases if not lease.vanished])
    try:
        _hand_back(runtime, suspects[1:])
        for batch, together in _batches(fresh):
            if not stopping.is_set():
                _run_together(runtime, batch, together)
        for lease in [*fresh, *suspects[:1]]:
            if runtime.keeper.holds(lease) and not stopping.is_set():
                run_lease(runtime, lease)
                reach("between_rows", lease.kind)
    finally:
        _hand_back(runtime, leases)
    return [lease.work_id for lease in suspects[1:]]


def _in_turns(leases: Sequence[Lease]) -> list[Lease]:
    """Order the rows of a message: first tries come first, and tenants take turns."""
    seen: Counter[UUID] = Counter()
    turns = {}
    for lease in leases:
        turns[lease.work_id] = (lease.attempts > 1, seen[lease.tenant_id])
        seen[lease.tenant_id] += 1
    return sorted(leases, key=lambda lease: turns[lease.work_id])


def _claim(runtime: Runtime, work_ids: list[int]) -> list[Lease]:
    """Claim what is due of the kinds this code knows; rows of newer code are left for newer workers."""
    return runtime.ledger.claim(
        work_ids,
        owner=runtime.owner,
        lease_seconds=runtime.settings.lease_seconds,
        kinds=list(STAGES),
        task_id=mask_id(current_task.request.id) if current_task else None,
        ahead=True,
    )


def _batches(leases: Sequence[Lease]) -> Iterator[tuple[Batch, list[Lease]]]:
    """Yield what may be done in one transaction: rows of one tenant on their first try, two or more."""
    together: dict[tuple[Batch, UUID], list[Lease]] = defaultdict(list)
    for lease in leases:
        batch = batch_of(lease) if lease.attempts == 1 else None
        if batch is not None:
            together[batch, lease.tenant_id].append(lease)
    yield from ((batch, found) for (batch, _), found in together.items() if len(found) > 1)


def _run_together(runtime: Runtime, batch: Batch, leases: list[Lease]) -> None:
    """Do rows in one transaction. When that fails nothing was done, and each is run alone to say why."""
    runtime.keeper.begin(leases[0])
    try:
        runtime.ledger.begin(leases)
        for lease in leases:
            reach("after_claim", lease.kind, work_id=lease.work_id, fence=lease.fence)
        batch(runtime.parts, leases)
        for lease in leases:
            reach("after_commit_before_ack", lease.kind, work_id=lease.work_id, fence=lease.fence)
    except (Exception, SystemExit) as error:
        if _is_ending(error):
            raise
        # Whose failure it is shows when each is run alone.
        log.warning("batch_taken_apart", kind=leases[0].kind, count=len(leases), error=type(error).__name__)
        return
    for lease in leases:
        runtime.keeper.drop(lease)
    _note(runtime, leases, "done")


def run_lease(runtime: Runtime, lease: Lease) -> None:
    """Run the stage of one lease; a failure becomes a retry, a deferral or a dead letter, never silence.

    A failure that cannot be recorded is raised; the lease then runs out, and the attempt counts.
    """
    with structlog.contextvars.bound_contextvars(work_id=lease.work_id, kind=lease.kind, fence=lease.fence):
        runtime.keeper.begin(lease)
        try:
            runtime.ledger.begin([lease])
            reach("after_claim", lease.kind, work_id=lease.work_id, fence=lease.fence)
            _run_stage(runtime, lease)
            reach("after_commit_before_ack", lease.kind, work_id=lease.work_id, fence=lease.fence)
        except FencedError:
            log.warning("work_fenced")
            _note(runtime, [lease], FENCED)
        except (Exception, SystemExit) as error:
            if _is_ending(error):
                raise
            _fail(runtime, lease, error)
        else:
            _note(runtime, [lease], "done")
        finally:
            runtime.keeper.drop(lease)


def _is_ending(error: BaseException) -> bool:
    """Tell whether somebody asks this process to end. A stage that asks for it has failed like any other."""
    return isinstance(error, SystemExit) and (stopping.is_set() or terminate_handler_fired())


def _run_stage(runtime: Runtime, lease: Lease) -> None:
    """Run the stage; on the last try of what vanished every time, set aside what it stands at, unseen."""
    if lease.vanished and lease.is_last_try and _set_aside(runtime, lease, "lease_expired", VANISHED):
        return
    STAGES[lease.kind](runtime.parts, lease)


def _note(runtime: Runtime, leases: Sequence[Lease], outcome: str) -> None:
    runtime.keeper.completed += len(leases) if outcome == "done" else 0
    runtime.keeper.tally.note(leases, outcome)


def _fail(runtime: Runtime, lease: Lease, error: BaseException) -> None:
    error_class = getattr(error, "error_class", ErrorClass.DEFERRED if is_passing(error) else ErrorClass.TRANSIENT)
    decision = decide_retry(
        error_class,
        attempts=lease.attempts,
        max_attempts=lease.max_attempts,
        jitter=random.random(),  # noqa: S311 - spreads retries, hides nothing
        retry_after_seconds=getattr(error, "retry_after_seconds", None),
        deferred_seconds=lease.deferred_seconds,
    )
    reason = _reason(error)
    if decision.dead and error_class is ErrorClass.DEFERRED:
        reason = f"put off for {lease.deferred_seconds / 3600:.0f} h: {reason}"
    if decision.dead and _set_aside(runtime, lease, error_class, reason):
        return
    held = runtime.ledger.fail(lease, decision, error_class=error_class, error=reason)
    _note(runtime, [lease], str(error_class) if held else FENCED)
    log.warning("work_failed", error=type(error).__name__, dead=decision.dead, held=held, exc_info=error)


def _set_aside(runtime: Runtime, lease: Lease, error_class: str, reason: str) -> bool:
    """Give up the one thing a line of work stands at, so that the line goes on; False when there is no such thing."""
    set_aside = QUARANTINES.get(lease.kind)
    if set_aside is None or not set_aside(runtime.parts, lease, error_class=error_class, reason=reason):
        return False
    log.error("work_set_aside", error_class=error_class)
    _note(runtime, [lease], error_class)
    return True


def _reason(error: BaseException) -> str:
    """Say why in words of ours: what drivers and libraries say quotes what they were given, and operators read this."""
    if isinstance(error, SystemExit):
        return "SystemExit: the stage asked for the end of its process"
    if isinstance(error, MemoryosError):
        words = str(error).encode("utf-8", "replace").decode("utf-8").replace("\x00", "")
        return f"{type(error).__name__}: {words}"
    state = sqlstate_of(error)
    return f"{type(error).__name__} {state}" if state else type(error).__name__


def _hand_back(runtime: Runtime, leases: Sequence[Lease]) -> None:
    """Release what is left of these leases. When that fails they run out, since nobody beats for them any more."""
    unfinished = [lease for lease in leases if runtime.keeper.holds(lease)]
    for lease in unfinished:
        runtime.keeper.drop(lease)
    runtime.ledger.release(unfinished)


def _clean(work_ids: object) -> list[int]:
    """Keep what can be a work id: the broker is not ours alone."""
    given = work_ids if isinstance(work_ids, list) else []
    return [each for each in given[:MAX_IDS] if type(each) is int and 0 < each < 2**63]
