"""How long it takes until everybody goes on: after a killed worker, an emptied broker, a restarted database."""

import time
from dataclasses import dataclass, field
from math import ceil

from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.members import POLL_SECONDS, Member, wait_until
from memoryos_pipeline.readmodels.fault_figures import (
    Held,
    count_done,
    held_by,
    rung_rows,
    still_orphaned,
    still_unheard,
)

LONGEST_SECONDS = 60.0


@dataclass
class Spans:
    """Seconds that were measured."""

    seconds: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float | None:
        """Return the nearest-rank percentile, None without a measurement."""
        ordered = sorted(self.seconds)
        return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 3) if ordered else None

    def figures(self) -> dict[str, float | int | None]:
        """Return count, p50, p99 and the longest."""
        longest = round(max(self.seconds), 3) if self.seconds else None
        return {"count": len(self.seconds), "p50": self.percentile(0.5), "p99": self.percentile(0.99), "max": longest}


def freeze_at_work(cluster: Cluster, member: Member) -> list[tuple[Held, str]]:
    """Freeze a worker; return the rows it holds and their kinds, which cannot change until it is thawed or killed."""
    member.freeze()
    with cluster.ledger.across_tenants() as connection:
        return held_by(connection, member.pid)


class Orphans:
    """Rows that dead workers held, until somebody else has taken each over."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[Held, float] = {}
        self._offered: set[Held] = set()
        self._next_look = 0.0
        self.offered = Spans()
        """Until its doorbell rang again: from then on any worker may take it."""
        self.taken = Spans()
        """Until somebody took it, whatever stood before it in the line."""

    def kill(self, member: Member, *, at_work_on: str | None = None) -> list[str] | None:
        """Kill a worker where it stands; return the kinds of the rows it held. They are watched from now on.

        With `at_work_on` it is killed only if it holds a row of that kind; otherwise it goes on, and None is returned.
        """
        held = freeze_at_work(self._cluster, member)
        kinds = [kind for _, kind in held]
        if at_work_on is not None and at_work_on not in kinds:
            member.thaw()
            return None
        member.kill()
        now = time.monotonic()
        self._waiting.update({row: now for row, _ in held})
        return kinds

    @property
    def is_waiting(self) -> bool:
        """Whether some row is still to be taken over."""
        return bool(self._waiting)

    def look(self) -> None:
        """Note which rows are on offer again, and which have been taken over."""
        if not self._waiting or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + POLL_SECONDS
        with self._cluster.ledger.across_tenants() as connection:
            left = still_orphaned(connection, self._waiting)
        now = time.monotonic()
        taken = self._waiting.keys() - left.keys()
        offered = {row for row in self._waiting if left.get(row, True)} - self._offered
        self.taken.seconds += [now - self._waiting[row] for row in taken]
        self.offered.seconds += [now - self._waiting[row] for row in offered]
        self._offered |= offered
        self._waiting = {row: since for row, since in self._waiting.items() if row in left}


def wipe_broker(cluster: Cluster) -> list[float]:
    """Empty the broker; return for each row that had a doorbell in it after how long it was rung again or claimed."""
    with cluster.ledger.across_tenants() as connection:
        left, since = rung_rows(connection)
    cluster.wipe_broker()
    begun, spans = time.monotonic(), list[float]()

    def all_heard() -> bool:
        nonlocal left
        with cluster.ledger.across_tenants() as connection:
            now_left = still_unheard(connection, left, since=since)
        spans.extend([time.monotonic() - begun] * (len(left) - len(now_left)))
        left = now_left
        return not left

    wait_until(all_heard, seconds=LONGEST_SECONDS)
    return [*spans, *[LONGEST_SECONDS] * len(left)]


def restart_database(cluster: Cluster, *, at_once: bool) -> float:
    """Stop Postgres, at once or after it has ended its clients, and start it; return after how long all goes on.

    That is: seconds from its first answer until the API is ready and a row of work was done (if any is owed).
    """
    cluster.restart_postgres(at_once=at_once)
    up = time.monotonic()
    with cluster.ledger.across_tenants() as connection:
        done = count_done(connection)

    def goes_on() -> bool:
        with cluster.ledger.across_tenants() as connection:
            is_moving = count_done(connection) > done
        return cluster.members["api"].ready(LONGEST_SECONDS).is_running and (is_moving or not cluster.owed())

    wait_until(goes_on, seconds=LONGEST_SECONDS)
    return time.monotonic() - up
