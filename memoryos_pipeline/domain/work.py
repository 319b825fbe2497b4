"""Work that is owed: its kinds, its queues, and what becomes of a failure. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class WorkKind(StrEnum):
    """What a work row asks for. Names are stored, so they are never changed, only added."""

    ADVANCE = "advance"
    SUMMARIZE = "summarize"
    EMBED = "embed"
    SEGMENT = "segment"
    HEAT = "heat"
    DISTILL = "distill"
    MERGE = "merge"
    FORGET = "forget"
    ERASE = "erase"


QUEUE_OF_KIND: dict[WorkKind, str] = {
    WorkKind.ADVANCE: "maintenance",
    WorkKind.SUMMARIZE: "summarize",
    WorkKind.EMBED: "embed",
    WorkKind.SEGMENT: "heat",
    WorkKind.HEAT: "heat",
    WorkKind.DISTILL: "distill",
    WorkKind.MERGE: "merge",
    WorkKind.FORGET: "forget",
    WorkKind.ERASE: "maintenance",
}
"""Which queue delivers a kind; a queue may deliver several."""


@dataclass(frozen=True, slots=True)
class Owed:
    """One piece of work to be done: unique by tenant, kind and subject."""

    kind: WorkKind
    subject_key: str
    scope_id: UUID
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed work row. Whatever is written for it is written under its fence.

    `vanished`: whoever had claimed it before never said what became of it; it may be what killed them.
    """

    work_id: int
    tenant_id: UUID
    scope_id: UUID
    kind: str
    subject_key: str
    generation: int
    fence: int
    attempts: int
    max_attempts: int
    vanished: bool = False


class ErrorClass(StrEnum):
    """How a failure is treated."""

    TRANSIENT = "transient"
    DEFERRED = "deferred"
    INVALID_OUTPUT = "invalid_output"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """What happens to a failed work row: `dead`, or ready again after `delay_seconds`."""

    dead: bool
    delay_seconds: float
    burns_attempt: bool


BACKOFF_BASE_SECONDS = 2.0
BACKOFF_CAP_SECONDS = 600.0


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return full-jitter backoff before the next try; `attempt` counts from 1, `jitter` is in [0, 1]."""
    ceiling: float = min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** (attempt - 1))
    return ceiling * jitter


def decide_retry(
    error_class: ErrorClass,
    *,
    attempts: int,
    max_attempts: int,
    jitter: float,
    retry_after_seconds: float | None = None,
) -> RetryDecision:
    """Decide what becomes of a failure. A deferral (rate limit, empty budget) burns no attempt."""
    wait = backoff_seconds(max(attempts, 1), jitter)
    if error_class is ErrorClass.DEFERRED:
        return RetryDecision(dead=False, delay_seconds=max(wait, retry_after_seconds or 0.0), burns_attempt=False)
    exhausted = attempts >= max_attempts
    dead = exhausted or error_class is ErrorClass.PERMANENT
    return RetryDecision(dead=dead, delay_seconds=wait, burns_attempt=True)
