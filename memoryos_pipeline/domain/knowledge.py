"""Knowledge: self-contained statements distilled from pages, and the verdicts that change them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

KnowledgeKind = Literal["fact", "note", "user_kb", "assistant_kb", "event", "correction", "summary"]
EventPrecision = Literal["minute", "day", "week", "month", "year"]
CORRECTED_TURNS = "corrected_seqs"
"""Attribute under which a correction names the turns of its conversation that were wrong."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement found on a page, not yet held against what is known.

    `content` is self-contained (names its speaker, carries its date where it has one) and in the source's language.
    `slot` names what it is about when a newer value replaces an older one (for example `maya|residence`), with
    `slot_value` the normalized value; None when the statement can live beside any other.
    """

    kind: KnowledgeKind
    content: str
    lang: str
    actor: str
    source_seqs: tuple[int, ...]
    turn_at: datetime
    importance: float
    slot: str | None = None
    slot_value: str | None = None
    negated: bool = False
    keywords: tuple[str, ...] = ()
    entities: tuple[tuple[str, str], ...] = ()
    """Pairs of name and type."""
    event_at: datetime | None = None
    event_precision: EventPrecision | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TraitDelta:
    """A change to the profile, with the ordinals of the candidates that are its evidence."""

    actor: str
    dimension: str
    level: str
    confidence: float
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Distillate:
    """What distillation found on a page; no candidates is an explicit nothing, never a failure."""

    candidates: tuple[Candidate, ...]
    traits: tuple[TraitDelta, ...]
    model: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Live knowledge near a candidate. `similarity` is the cosine of their vectors."""

    knowledge_id: UUID
    lineage_id: UUID
    version: int
    kind: KnowledgeKind
    content: str
    actor: str
    slot: str | None
    slot_value: str | None
    turn_at: datetime
    event_at: datetime | None
    similarity: float


class Decision(StrEnum):
    """What becomes of a candidate beside its neighbours."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    CLOSE = "CLOSE"
    NOOP = "NOOP"
    COEXIST = "COEXIST"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One decision. UPDATE and NOOP name the neighbour; CLOSE closes it and still adds the candidate.

    `arrived_late` marks a candidate older than the truth it meets: it is stored as history and retires nothing.
    """

    decision: Decision
    neighbour_id: UUID | None = None
    reason: str = ""
    arrived_late: bool = False
