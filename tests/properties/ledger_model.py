"""What the ledger must say, as plain dicts: every work row as it should be after each thing that can be done to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from memoryos_pipeline.domain.work import ErrorClass, Lease

MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Work:
    """One work row as far as promises are made about it."""

    work_id: int
    kind: str
    subject_key: str
    state: str
    generation: int
    fence: int
    attempts: int
    executions: int
    is_overdue: bool = False

    @property
    def is_claimable(self) -> bool:
        """Whether whoever asks for it now gets it; nothing here has a delay."""
        waits = self.state == "ready" or (self.state == "leased" and self.is_overdue)
        return waits and self.attempts < MAX_ATTEMPTS

    def is_held_by(self, lease: Lease) -> bool:
        """Whether a lease still stands, run out or not."""
        return self.state == "leased" and self.fence == lease.fence


@dataclass
class Model:
    """Turns and work as they must be."""

    turns: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """client_turn_id in the order of seq, under (user, conversation)."""
    work: dict[int, Work] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)

    def claim(self, work_ids: Iterable[int]) -> list[int]:
        """Lease what can be leased; return the ids in their order."""
        got = sorted(one for one in set(work_ids) if one in self.work and self.work[one].is_claimable)
        for one in got:
            row = self.work[one]
            self.work[one] = replace(
                row, state="leased", fence=row.fence + 1, attempts=row.attempts + 1, executions=row.executions + 1,
                is_overdue=False,
            )  # fmt: skip
        return got

    def complete(self, lease: Lease) -> None:
        """End work: done, or ready again when it was asked for meanwhile."""
        row = self.work[lease.work_id]
        if row.generation == lease.generation:
            self.work[row.work_id] = replace(row, state="done", is_overdue=False)
        else:
            self.work[row.work_id] = replace(row, state="ready", attempts=0, is_overdue=False)

    def fail(self, lease: Lease, error_class: ErrorClass) -> None:
        """Give work back: a deferral costs nothing, a refusal or the last attempt ends it."""
        row = self.work[lease.work_id]
        if error_class is ErrorClass.DEFERRED:
            self.work[row.work_id] = replace(row, state="ready", attempts=row.attempts - 1, is_overdue=False)
        else:
            is_dead = error_class is ErrorClass.PERMANENT or lease.attempts >= MAX_ATTEMPTS
            self.work[row.work_id] = replace(row, state="dead" if is_dead else "ready", is_overdue=False)

    def release(self, lease: Lease) -> None:
        """Hand work back as if it had never been claimed."""
        row = self.work[lease.work_id]
        self.work[row.work_id] = replace(row, state="ready", attempts=row.attempts - 1, is_overdue=False)

    def reap(self) -> None:
        """Take back what ran out, and bury what has no attempt left."""
        for row in list(self.work.values()):
            ran_out = row.state == "leased" and row.is_overdue
            spent = row.state == "ready" and row.attempts >= MAX_ATTEMPTS
            if ran_out or spent:
                state = "dead" if row.attempts >= MAX_ATTEMPTS else "ready"
                self.work[row.work_id] = replace(row, state=state, is_overdue=False)

    def accept(self, found: dict[int, Work], *, but: Iterable[int] = ()) -> None:
        """Take over what a stage owed: new rows, and rows that were asked for again. Anything else is no owing."""
        exempt = set(but)
        for work_id, row in found.items():
            before = self.work.get(work_id)
            if work_id in exempt or row == before:
                continue
            assert before is None or is_owed_again(before, row), f"{before} became {row}"
            assert before is not None or (row.state, row.fence, row.attempts) == ("ready", 0, 0), row
            self.work[work_id] = row


def is_owed_again(before: Work, after: Work) -> bool:
    """Tell whether asking again made one row of the other: more generations, and what was over begins anew."""
    if after.generation <= before.generation:
        return False
    if before.state in {"done", "cancelled"}:
        return after == replace(before, generation=after.generation, state="ready", attempts=0)
    return after == replace(before, generation=after.generation)
