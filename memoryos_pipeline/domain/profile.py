"""How a profile changes: deltas with evidence, never a rewrite. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from memoryos_pipeline.domain.knowledge import TraitDelta

EVIDENCE_KEPT = 20
CERTAINTY_CAP = 0.99
"""No amount of evidence makes a trait certain."""


@dataclass(frozen=True, slots=True)
class Trait:
    """One dimension of one actor's profile, with the knowledge it stands on; `confidence` is in 0..1."""

    actor: str
    dimension: str
    level: str
    confidence: float
    knowledge_ids: tuple[UUID, ...]
    version: int


def apply_delta(current: Trait | None, delta: TraitDelta, evidence: Sequence[UUID]) -> Trait | None:
    """Return the trait after a delta. `evidence` is the live knowledge it cites; a delta without any changes nothing.

    The same level gathers evidence and confidence. Another level takes over when it is at least as well founded,
    and otherwise only weakens what stands.
    """
    if not evidence:
        return current
    if current is None:
        return Trait(delta.actor, delta.dimension, delta.level, _capped(delta.confidence), _kept(evidence), 1)
    if not set(evidence) - set(current.knowledge_ids) and delta.level == current.level:
        return current
    level, confidence, ids = _weigh(current, delta, evidence)
    return Trait(current.actor, current.dimension, level, confidence, ids, current.version + 1)


def _weigh(current: Trait, delta: TraitDelta, evidence: Sequence[UUID]) -> tuple[str, float, tuple[UUID, ...]]:
    if delta.level == current.level:
        together = 1.0 - (1.0 - current.confidence) * (1.0 - delta.confidence)
        return current.level, _capped(together), _kept([*current.knowledge_ids, *evidence])
    if delta.confidence >= current.confidence:
        return delta.level, _capped(delta.confidence), _kept(evidence)
    return current.level, current.confidence * (1.0 - delta.confidence / 2.0), current.knowledge_ids


def _capped(confidence: float) -> float:
    return min(CERTAINTY_CAP, max(0.0, confidence))


def _kept(evidence: Sequence[UUID]) -> tuple[UUID, ...]:
    """Keep each id once, the newest last, at most EVIDENCE_KEPT of them."""
    newest_first = list(dict.fromkeys(reversed(evidence)))[:EVIDENCE_KEPT]
    return tuple(reversed(newest_first))
