"""What became of everything that was published: the tiers, read from SQL, and the promises, checked there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.readmodels.invariants import JournalEntry, compare_journal, find_violations
from memoryos_pipeline.readmodels.views import LISTINGS, MAX_ROWS, Selection, list_rows
from memoryos_pipeline.store.database import Database

TIERS = ("turns", "pages", "segments", "knowledge", "links", "profile")
CHECKED = frozenset({"I2", "I3", "I4", "I6", "I7", "I8"})
"""Invariants read as views; I1 is the journal's."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows by tier, and how many promises were broken."""

    tiers: dict[str, list[Row]]
    lost: int
    doubled: int
    violations: list[str]

    @property
    def is_sound(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.doubled or self.violations)


def read_outcome(database: Database, tenant_id: UUID, journal: list[JournalEntry]) -> Outcome:
    """Read the tiers of a drained pipeline and hold the journal against SQL."""
    with database.transaction(tenant_id) as connection:
        verdict = compare_journal(connection, tenant_id, journal)
        broken = [
            f"{each.invariant}: {each.sentence} ({each.subject})"
            for each in find_violations(connection, tenant_id, at_rest=True)
            if each.invariant in CHECKED
        ]
        tiers = {name: list(_all_rows(connection, tenant_id, name)) for name in TIERS}
    return Outcome(tiers, len(verdict.lost), len(verdict.doubled) + len(verdict.unexpected), broken)


def _all_rows(connection: Connection, tenant_id: UUID, name: str) -> Iterator[Row]:
    cursor: str | None = None
    while True:
        found = list_rows(connection, LISTINGS[name], Selection(tenant_id), cursor=cursor, limit=MAX_ROWS)
        yield from found.rows
        cursor = found.cursor
        if cursor is None:
            return
