"""Taking a decision back: the rows it changed as they were, and what it stored standing beside them. Pure.

What was said is never dropped: a statement whose decision is undone stays, in a line of its own and without the slot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memoryos_pipeline.domain.errors import MemoryosError
from memoryos_pipeline.domain.truths import Ruling, Truth

PERSON = "person"
"""Who undoes or revises is whoever holds a key; no model does."""

IDS = ("knowledge_id", "lineage_id", "superseded_by")
MOMENTS = ("valid_from", "valid_to", "last_reinforced_at", "pinned_at")
PLAIN = ("version", "slot", "status", "close_reason", "importance", "strength_days")
DECISIVE = ("lineage_id", "version", "slot", "valid_from", "valid_to", "status", "superseded_by")
"""What must still be as the decision left it; use may have made a row stronger since."""


class CannotUndoError(MemoryosError):
    """The decision cannot be taken back: it already was, it changed nothing, or later rows stand on it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The changeable part of a row of knowledge; times are instants."""

    knowledge_id: UUID
    lineage_id: UUID
    version: int
    slot: str | None
    valid_from: datetime
    valid_to: datetime | None
    status: str
    superseded_by: UUID | None
    close_reason: str | None
    importance: float
    strength_days: float
    last_reinforced_at: datetime
    pinned_at: datetime | None

    @property
    def is_live(self) -> bool:
        """Whether this is current truth."""
        return self.status == "active"


@dataclass(frozen=True, slots=True)
class Swap:
    """One row before a decision and after it."""

    before: Standing
    after: Standing


@dataclass(frozen=True, slots=True)
class Source:
    """Turns that a decision made sources of a row."""

    knowledge_id: UUID
    seqs: tuple[int, ...]


def undo_record(ruling: Ruling) -> dict[str, Any]:
    """Return, as JSON, everything it takes to undo a ruling."""
    swaps = [{"before": _written(before), "after": _written(after)} for before, after in ruling.changed]
    if ruling.added is not None and (ruling.changed or not ruling.added.is_live):
        swaps.append({"before": _written(_beside(ruling.added)), "after": _written(ruling.added)})
    source = None
    if ruling.source is not None:
        source = {"knowledge_id": str(ruling.source[0]), "seqs": list(ruling.source[1])}
    return {"swaps": swaps, "source": source}


def read_swaps(record: Mapping[str, Any]) -> list[Swap]:
    """Return the rows of an undo record."""
    return [Swap(_read(swap["before"]), _read(swap["after"])) for swap in record.get("swaps", ())]


def read_source(record: Mapping[str, Any]) -> Source | None:
    """Return the turns an undo record takes away again, if any."""
    source = record.get("source")
    return Source(UUID(source["knowledge_id"]), tuple(source["seqs"])) if source else None


def plan_undo(swaps: Sequence[Swap], current: Mapping[UUID, Standing]) -> list[Swap]:
    """Return what to write, each row as it is now and as it will be. Raises CannotUndoError.

    The rows have to be as the decision left them; whoever yields comes first, since two live rows of one slot or
    statement cannot exist, not even for a moment.
    """
    if not swaps:
        raise CannotUndoError("this decision changed no row: there is nothing to undo")
    for swap in swaps:
        now = current.get(swap.after.knowledge_id)
        if now is None:
            raise CannotUndoError(f"the statement {swap.after.knowledge_id} is gone")
        if any(getattr(now, name) != getattr(swap.after, name) for name in DECISIVE):
            raise CannotUndoError(f"a later decision changed the statement {now.knowledge_id}: undo that one first")
    found = [Swap(current[swap.after.knowledge_id], swap.before) for swap in swaps]
    return sorted(found, key=lambda swap: (swap.after.is_live and swap.after.slot is not None, swap.after.is_live))


def record_swaps(done: Sequence[Swap]) -> dict[str, Any]:
    """Return the undo record of rows that were written."""
    swaps = [{"before": _as_json(swap.before), "after": _as_json(swap.after)} for swap in done]
    return {"swaps": swaps, "source": None}


def _beside(row: Truth) -> Truth:
    """Return a stored row as it stands when its decision is undone."""
    return replace(
        row, lineage_id=row.knowledge_id, version=1, slot=None, status="active", valid_to=None, superseded_by=None,
        close_reason=None,
    )  # fmt: skip


def standing_of(row: Truth) -> Standing:
    """Return the changeable part of a row."""
    return Standing(**{name: getattr(row, name) for name in (*IDS, *MOMENTS, *PLAIN)})


def _written(row: Truth) -> dict[str, Any]:
    return _as_json(standing_of(row))


def _as_json(row: Standing) -> dict[str, Any]:
    moments = {name: value.isoformat() for name in MOMENTS if (value := getattr(row, name)) is not None}
    ids = {name: str(value) for name in IDS if (value := getattr(row, name)) is not None}
    return {**dict.fromkeys((*IDS, *MOMENTS)), **{name: getattr(row, name) for name in PLAIN}, **ids, **moments}


def _read(written: Mapping[str, Any]) -> Standing:
    moments = {name: datetime.fromisoformat(written[name]) if written[name] else None for name in MOMENTS}
    ids = {name: UUID(written[name]) if written[name] else None for name in IDS}
    return Standing(**{**dict(written), **ids, **moments})
