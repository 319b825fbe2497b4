"""A profile changes by deltas with evidence and never without."""

from uuid import UUID

import pytest

from memoryos_pipeline.domain.knowledge import TraitDelta
from memoryos_pipeline.domain.profile import CERTAINTY_CAP, EVIDENCE_KEPT, apply_delta

ONE, TWO = UUID(int=1), UUID(int=2)


def _delta(level: str, confidence: float) -> TraitDelta:
    return TraitDelta("Maya", "openness", level, confidence, (0,))


class TestApply:
    def test_a_delta_without_evidence_changes_nothing(self) -> None:
        """Neither a new trait nor a change comes from nowhere."""
        assert apply_delta(None, _delta("high", 0.9), []) is None
        trait = apply_delta(None, _delta("high", 0.5), [ONE])
        assert apply_delta(trait, _delta("low", 0.9), []) is trait

    def test_the_same_level_gathers_confidence(self) -> None:
        """Two independent findings of .5 make .75, and both are cited."""
        trait = apply_delta(apply_delta(None, _delta("high", 0.5), [ONE]), _delta("high", 0.5), [TWO])
        assert trait is not None
        assert (trait.confidence, trait.knowledge_ids, trait.version) == (0.75, (ONE, TWO), 2)

    def test_the_same_evidence_counts_once(self) -> None:
        """Repeating a finding with the evidence it already stands on adds nothing."""
        trait = apply_delta(None, _delta("high", 0.5), [ONE])
        assert apply_delta(trait, _delta("high", 0.5), [ONE]) is trait

    def test_a_better_founded_level_takes_over(self) -> None:
        """Another level with at least the confidence replaces level and evidence, and raises the version."""
        trait = apply_delta(apply_delta(None, _delta("high", 0.5), [ONE]), _delta("low", 0.5), [TWO])
        assert trait is not None
        assert (trait.level, trait.knowledge_ids, trait.version) == ("low", (TWO,), 2)

    def test_a_weaker_contradiction_only_weakens(self) -> None:
        """A doubt does not overturn: the level stays, less sure than before."""
        trait = apply_delta(apply_delta(None, _delta("high", 0.8), [ONE]), _delta("low", 0.2), [TWO])
        assert trait is not None
        assert trait.level == "high"
        assert trait.confidence == pytest.approx(0.72)
        assert trait.knowledge_ids == (ONE,)

    def test_confidence_and_evidence_are_bounded(self) -> None:
        """Fifty findings make no certainty and keep only the newest evidence."""
        trait = None
        for number in range(50):
            trait = apply_delta(trait, _delta("high", 0.9), [UUID(int=number + 1)])
        assert trait is not None
        assert trait.confidence == CERTAINTY_CAP
        assert len(trait.knowledge_ids) == EVIDENCE_KEPT
        assert trait.knowledge_ids[-1] == UUID(int=50)
