"""The one envelope around every stage: claim, run, and say what became of it. Stages know nothing of it."""

import random
import threading
from collections.abc import Sequence

import structlog
from celery import Task

from memoryos_pipeline.domain.errors import FencedError, MemoryosError
from memoryos_pipeline.domain.work import ErrorClass, Lease, decide_retry
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import is_passing, sqlstate_of
from workers.runtime import Runtime, get_runtime

log = structlog.get_logger("workers.envelope")
MAX_IDS = 100

stopping = threading.Event()
"""Set when this process was asked to stop: no further row is begun."""


class WorkTask(Task):  # type: ignore[misc]
    """Base of every task: late ack, no result, and nothing printable but work ids."""

    Request = "workers.masking:MaskedRequest"
    acks_late = True
    ignore_result = True


def deliver(work_ids: object) -> None:
    """Do the work rows a message names. Rows that are not due, or not ours, are left without a word.

    Of the rows that vanished with their last worker one is begun at most, after all others: if it is what kills a
    process, it takes nothing else along, and is given up alone.
    """
    runtime = get_runtime()
    leases = runtime.ledger.claim(_clean(work_ids), owner=runtime.owner, lease_seconds=runtime.settings.lease_seconds)
    runtime.keeper.take(leases)
    suspects = [lease for lease in leases if lease.vanished]
    try:
        _hand_back(runtime, suspects[1:])
        for lease in [*(lease for lease in leases if not lease.vanished), *suspects[:1]]:
            if runtime.keeper.holds(lease) and not stopping.is_set():
                run_lease(runtime, lease)
                reach("between_rows", lease.kind)
    finally:
        _hand_back(runtime, leases)


def run_lease(runtime: Runtime, lease: Lease) -> None:
    """Run the stage of one lease; a failure becomes a retry, a deferral or a dead letter, never silence.

    A failure that cannot be recorded is raised; the lease then runs out, and the attempt counts.
    """
    with structlog.contextvars.bound_contextvars(work_id=lease.work_id, kind=lease.kind, fence=lease.fence):
        try:
            reach("after_claim", lease.kind, work_id=lease.work_id, fence=lease.fence)
            STAGES.get(lease.kind, _unknown)(runtime.parts, lease)
            reach("after_commit_before_ack", lease.kind, work_id=lease.work_id, fence=lease.fence)
        except FencedError:
            log.warning("work_fenced")
        except Exception as error:  # noqa: BLE001 - every failure is classified and recorded
            _fail(runtime, lease, error)
        else:
            runtime.keeper.completed += 1
        finally:
            runtime.keeper.drop(lease)


class UnknownKindError(Exception):
    """Newer code wrote this row; it is left for newer workers."""

    error_class = ErrorClass.DEFERRED
    retry_after_seconds = 60.0


def _unknown(_: Parts, __: Lease) -> None:
    raise UnknownKindError


def _fail(runtime: Runtime, lease: Lease, error: Exception) -> None:
    error_class = getattr(error, "error_class", ErrorClass.DEFERRED if is_passing(error) else ErrorClass.TRANSIENT)
    decision = decide_retry(
        error_class,
        attempts=lease.attempts,
        max_attempts=lease.max_attempts,
        jitter=random.random(),  # noqa: S311 - spreads retries, hides nothing
        retry_after_seconds=getattr(error, "retry_after_seconds", None),
    )
    held = runtime.ledger.fail(lease, decision, error_class=error_class, error=_reason(error))
    log.warning("work_failed", error=type(error).__name__, dead=decision.dead, held=held, exc_info=error)


def _reason(error: Exception) -> str:
    """Say why in words of ours: what drivers and libraries say quotes what they were given, and operators read this."""
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
