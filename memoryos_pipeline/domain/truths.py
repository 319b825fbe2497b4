"""The values conflict rules work on: stored rows as truths, candidates as claims, and the plan of changes."""

import hashlib
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memoryos_pipeline.domain.knowledge import Candidate, Decision, KnowledgeKind
from memoryos_pipeline.domain.policies import Policy

Status = Literal["active", "superseded", "closed", "forgotten"]


NOTHING = "none"
"""Last part of a slot that answers for its whole group: `maya|allergy|none` denies every `maya|allergy|...`."""


@dataclass(frozen=True, slots=True)
class SlotQuery:
    """Which slots a statement may contradict: these, and all that begin with one of the prefixes."""

    slots: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def __or__(self, other: "SlotQuery") -> "SlotQuery":
        return SlotQuery((*self.slots, *other.slots), (*self.prefixes, *other.prefixes))


def slots_beside(slot: str | None) -> SlotQuery:
    """Return which slots a statement of this slot may contradict."""
    if slot is None:
        return SlotQuery()
    group = _group(slot)
    if group is None:
        return SlotQuery((slot,))
    return SlotQuery((slot,), (f"{group}|",)) if denies_group(slot) else SlotQuery((slot, f"{group}|{NOTHING}"))


_KIN = {"diet": ("eats|",), "eats": ("diet",)}
"""Attributes that say something about each other without sharing a slot: a vegetarian eats no fish."""


def slots_near(slot: str | None) -> SlotQuery:
    """Return which slots a verdict on a statement of this slot has to know: those it may contradict, and their kin."""
    beside = slots_beside(slot)
    parts = (slot or "").split("|")
    if len(parts) < 2:
        return beside
    kin = [f"{parts[0]}|{each}" for each in _KIN.get(parts[1], ())]
    return beside | SlotQuery(
        tuple(each for each in kin if not each.endswith("|")), tuple(each for each in kin if each.endswith("|"))
    )


def denies_group(slot: str) -> bool:
    """Tell whether a slot says that nothing of its group holds."""
    return _group(slot) is not None and slot.endswith(f"|{NOTHING}")


def _group(slot: str) -> str | None:
    group = slot.rpartition("|")[0]
    return group if "|" in group else None


@dataclass(frozen=True, slots=True)
class Truth:
    """A stored row as the rules see it.

    `valid_from` is when it was first said, `asserted_at` when it was last said; both are turn times.
    """

    knowledge_id: UUID
    lineage_id: UUID
    version: int
    kind: KnowledgeKind
    content_key: bytes
    slot: str | None
    asserted_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    status: Status
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

    def rules_out(self, other: "Truth") -> bool:
        """Tell whether only one of the two rows can be live: one lineage, one slot, or one statement of one kind."""
        if self.knowledge_id == other.knowledge_id:
            return False
        same_slot = self.slot is not None and self.slot == other.slot
        same_statement = (self.kind, self.content_key) == (other.kind, other.content_key)
        return same_slot or same_statement or self.lineage_id == other.lineage_id


@dataclass(frozen=True, slots=True)
class Claim:
    """A candidate on its way in, under the id it would be stored under, with the neighbours it was shown."""

    ordinal: int
    knowledge_id: UUID
    candidate: Candidate
    offered: frozenset[UUID] = frozenset()

    def contradicts(self, slot: str | None) -> bool:
        """Tell whether a row of this slot cannot stay true beside the claim, by the slot alone."""
        own = self.candidate.slot
        if own is None or slot is None:
            return False
        beside = slots_beside(own)
        denied = denies_group(slot) and slot != own and self.candidate.negated
        return not denied and (slot in beside.slots or slot.startswith(beside.prefixes))

    @property
    def content_key(self) -> bytes:
        """What makes two statements of one kind the same."""
        return content_key(self.candidate.content)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was decided for a claim: `new_id` was stored, `old_id` is the row it met; `reason` says by what rule."""

    ordinal: int
    decision: Decision
    reason: str
    new_id: UUID | None
    old_id: UUID | None = None
    changed: tuple[tuple[Truth, Truth], ...] = ()
    """Rows that existed, as they were before this decision and as it left them."""
    added: Truth | None = None
    """The row this decision stored, as it left it."""
    source: tuple[UUID, tuple[int, ...]] | None = None
    """The row that took the claim as one more source, and the turns it cites since."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Row changes of one page. `supported` pairs rows with the ordinals of claims that are new sources of them.

    `changed` are rows that existed, as they are now; `retired` are the rows, old or new, that ended with this page.
    """

    added: tuple[tuple[int, Truth], ...]
    changed: tuple[Truth, ...]
    retired: tuple[Truth, ...]
    supported: tuple[tuple[UUID, int], ...]
    reinforced: tuple[UUID, ...]
    rulings: tuple[Ruling, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """What the plan is made against: every version of the lineages concerned, and how many rows are live."""

    truths: tuple[Truth, ...]
    live_rows: int
    now: datetime
    policy: Policy


def content_key(content: str) -> bytes:
    """Return the SHA-256 of the compared form of a statement: forms, case and spaces folded."""
    folded = " ".join(unicodedata.normalize("NFKC", content).casefold().split())
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).digest()
