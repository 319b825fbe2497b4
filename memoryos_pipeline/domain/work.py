"""Work that is owed: its kinds, its queues, and what becomes of a failure. Pure."""

from collections import defaultdict
from collections.abc import Iterable
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
    MERGE_PAGE = "merge_page"
    """A page that merging was given up for; it is owed dead, and a replay puts the page back in line."""
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
    WorkKind.MERGE_PAGE: "merge",
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
    `deferred_seconds`: for how long it has been put off without a try that counted.
    `begun`: whether its stage is said to have begun; what was claimed ahead begins later.
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
    deferred_seconds: float = 0.0
    begun: bool = True

    @property
    def is_last_try(self) -> bool:
        """Whether a failure that counts gives the row up."""
        return self.attempts >= self.max_attempts


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
DEFERRAL_LIMIT_SECONDS = 86_400.0
"""What was put off for a day without one try that counted is given up: whoever must act has to hear of it."""


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return full-jitter backoff before the next try; `attempt` counts from 1, `jitter` is in [0, 1]."""
    ceiling: float = min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(attempt - 1, 20))
    return ceiling * jitter


def decide_retry(
    error_class: ErrorClass,
    *,
    attempts: int,
    max_attempts: int,
    jitter: float,
    retry_after_seconds: float | None = None,
    deferred_seconds: float = 0.0,
) -> RetryDecision:
    """Decide what becomes of a failure. A deferral (rate limit, empty budget) burns no attempt, but grows old."""
    wait = backoff_seconds(max(attempts, 1), jitter)
    if error_class is ErrorClass.DEFERRED:
        return RetryDecision(
            dead=deferred_seconds >= DEFERRAL_LIMIT_SECONDS,
            delay_seconds=max(wait, retry_after_seconds or 0.0),
            burns_attempt=False,
        )
    exhausted = attempts >= max_attempts
    dead = exhausted or error_class is ErrorClass.PERMANENT
    return RetryDecision(dead=dead, delay_seconds=wait, burns_attempt=True)


@dataclass(frozen=True, slots=True)
class Tallied:
    """How often work of a kind ended in one way for one tenant within the last minutes: `done` or an error class."""

    kind: str
    tenant_id: UUID
    outcome: str
    count: int


VANISHED = "lease_expired"
"""How work ended whose worker was gone before it said anything."""
PASSING = frozenset({"done", str(ErrorClass.DEFERRED), VANISHED})
"""Outcomes that say nothing against a kind: a deferral is the provider's, and has its own breaker; a lost worker is
mostly the machine's."""


def kinds_to_pause(tallies: Iterable[Tallied], *, share: float, least: int) -> dict[str, str]:
    """Return kinds that are broken as such, each with the error class of its failures.

    A kind is broken when one class failed at least `least` times and, on average over the tenants that ran it, in
    more than `share` of their tries: one tenant whose rows all fail stops nobody else.
    """
    by_kind: dict[str, list[Tallied]] = defaultdict(list)
    for each in tallies:
        by_kind[each.kind].append(each)
    verdicts = {kind: _broken_by(rows, share, least) for kind, rows in by_kind.items()}
    return {kind: outcome for kind, outcome in verdicts.items() if outcome is not None}


def _broken_by(rows: list[Tallied], share: float, least: int) -> str | None:
    total: dict[UUID, int] = defaultdict(int)
    failed: dict[str, dict[UUID, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        total[row.tenant_id] += row.count
        if row.outcome not in PASSING:
            failed[row.outcome][row.tenant_id] += row.count
    for outcome, by_tenant in sorted(failed.items()):
        mean = sum(by_tenant[tenant_id] / tried for tenant_id, tried in total.items() if tried) / len(total)
        if sum(by_tenant.values()) >= least and mean > share:
            return outcome
    return None


def find_troubled(tallies: Iterable[Tallied], *, share: float, least: int) -> set[tuple[str, UUID]]:
    """Return the kinds and tenants whose tries mostly failed or ended their worker: they go on in a narrow lane.

    That is at least `least` such tries of late, and more than `share` of all. Deferrals count as neither.
    """
    total: dict[tuple[str, UUID], int] = defaultdict(int)
    failed: dict[tuple[str, UUID], int] = defaultdict(int)
    for each in tallies:
        if each.outcome != ErrorClass.DEFERRED:
            total[each.kind, each.tenant_id] += each.count
            failed[each.kind, each.tenant_id] += 0 if each.outcome == "done" else each.count
    return {key for key, count in failed.items() if count >= least and count > share * total[key]}
