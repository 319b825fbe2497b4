"""One life remembered by a whole memory, and by one that is hot only."""

from dataclasses import replace

import pytest

from memoryos_pipeline.evaluation.conflicts_run import MAX_ATTEMPTS, Pipeline
from memoryos_pipeline.evaluation.corpus import make_corpus
from memoryos_pipeline.evaluation.generated import generated_data
from memoryos_pipeline.evaluation.tiers import VARIANTS, Told, ask_all, measure, remember
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.stages.parts import Parts
from tests.conftest import Stack

WEEKS = 3


def _told() -> Told:
    """A life, and the last weeks of a talk with the questions that are answered in them."""
    talks = generated_data(["en"])
    weeks = sorted({turn["client_turn_id"].split("-")[0] for turn in talks.turns})[-WEEKS:]
    turns = [turn for turn in talks.turns if turn["client_turn_id"].split("-")[0] in weeks]
    kept = {turn["client_turn_id"] for turn in turns}
    questions = [one for one in talks.questions if one.gold <= kept]
    return Told(make_corpus("en", 1, people=1), replace(talks, turns=turns, questions=questions))


class TestMemory:
    @pytest.mark.parametrize("name", ["full", "hot only"])
    def test_it_lacks_what_it_does_without(self, stack: Stack, name: str) -> None:
        """A whole memory finds what was said long ago and holds it true; without a tier it cannot."""
        variant, told, embedder = VARIANTS[name], _told(), HashingEmbedder()
        parts = Parts(stack.app, embedder, ExtractiveModel(embedder), variant.policy, MAX_ATTEMPTS)
        pipeline = Pipeline(parts, stack.ledger_database, stack.owner, stack.tenant_id, variant.works)
        told_turns: list[int] = []
        remember(pipeline, told.lines, advanced=told_turns.append)
        asked = ask_all(pipeline, variant, told.talks.questions, advanced=lambda _: None)
        row = measure(pipeline, variant, told, asked)

        assert sum(told_turns) == len(told.lines)
        assert len(asked) == len(told.talks.questions) >= 5
        assert (row["r10"] > 0.7) is (name != "hot only")
        assert (row["facts_found"] > 0.25) is (name == "full")  # of nine months that nobody asked about: the rest faded
        assert (row["old_truth_live"] is None) is (name != "full")
        assert (row["live_items"] > 30) is (name != "hot only")
        assert row["live_items"] > 0
        assert row["context_tokens"] > 0
