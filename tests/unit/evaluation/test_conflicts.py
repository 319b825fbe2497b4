"""The score of a memory: an empty one cannot win, a perfect one meets every target, each fault shows in its measure."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

import pytest

from memoryos_pipeline.evaluation.conflicts import TARGETS, Scorer, meets, summarize_runs
from memoryos_pipeline.evaluation.corpus import Corpus, make_corpus
from memoryos_pipeline.readmodels.known import Known


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """One small corpus."""
    return make_corpus("en", 1, people=3)


def perfect(corpus: Corpus) -> list[Known]:
    """A memory that holds exactly what is so: one row a truth, ended by what changed it."""
    said = defaultdict(list)
    for line in sorted(corpus.lines, key=lambda line: line.at):
        if line.truth:
            said[line.truth].append(line)
    by_turn = {line.turn_id: line.truth for line in corpus.lines}
    lines = {line.turn_id: line for line in corpus.lines}
    ended = {by_turn[old]: lines[new] for old, new in corpus.changes}
    wrong_turn = {by_turn[right]: wrong for wrong, right in corpus.corrections}
    rows = []
    for truth, found in said.items():
        end = ended.get(truth)
        cited = tuple(line.turn_id for line in found) + ((wrong_turn[truth],) if truth in wrong_turn else ())
        rows.append(Known(
            uuid5(NAMESPACE_OID, truth), f"[2025-01-01] {found[0].speaker}: {found[0].text}", found[0].speaker,
            "correction" if truth in wrong_turn else "fact", "superseded" if end else "active", found[0].at,
            end.at if end else None, uuid5(NAMESPACE_OID, str(end.truth)) if end else None, cited,
        ))  # fmt: skip
    return rows


def measured(corpus: Corpus, known: list[Known]) -> dict[str, float]:
    """The worst figures of one run."""
    report = summarize_runs([(corpus, Scorer(corpus, known).counts())])
    return {name: report[name] for name in TARGETS}


class TestScore:
    def test_a_perfect_memory_meets_every_target(self, corpus: Corpus) -> None:
        """Nothing is missed, and every correction is linked."""
        report = summarize_runs([(corpus, Scorer(corpus, perfect(corpus)).counts())])
        assert report["missed"] == []
        assert report["corrections_linked"] == 1.0

    def test_an_empty_memory_misses_what_it_should_hold(self, corpus: Corpus) -> None:
        """It retires nothing and duplicates nothing, and still fails."""
        figures = measured(corpus, [])
        assert {name for name in TARGETS if not meets(name, figures[name])} >= {"new_truth_live", "facts_found"}

    @pytest.mark.parametrize(
        ("measure", "spoil"),
        [
            ("old_truth_live", lambda row: replace(row, status="active")),
            ("history_complete", lambda row: replace(row, superseded_by=None)),
            ("history_complete", lambda row: replace(row, valid_to=row.valid_from)),
        ],
    )
    def test_a_fault_of_what_ended_shows(
        self, corpus: Corpus, measure: str, spoil: Callable[[Known], Known]
    ) -> None:  # fmt: skip
        """What is over and held to be true, and what ended without a trace, each miss a target."""
        spoiled = [spoil(row) if row.status == "superseded" else row for row in perfect(corpus)]
        assert not meets(measure, measured(corpus, spoiled)[measure])

    def test_ending_what_stands_and_storing_twice_show(self, corpus: Corpus) -> None:
        """The two faults of a memory that is too eager, or not eager enough."""
        known = perfect(corpus)
        retired = [replace(row, status="closed") for row in known]
        twice = known + [replace(row, knowledge_id=uuid5(row.knowledge_id, "again")) for row in known]
        assert measured(corpus, retired)["wrongly_retired"] > 0.5
        assert measured(corpus, twice)["duplicates"] > 0.3

    def test_namesakes_in_one_row_are_mixed_up(self, corpus: Corpus) -> None:
        """A row that cites what was said of two people of one name counts, however right the rest is."""
        known, (one, other) = perfect(corpus), corpus.homonyms[0]
        mixed = [replace(row, turn_ids=(one, other)) if one in row.turn_ids else row for row in known]
        assert measured(corpus, mixed)["homonym_mixups"] == 1
