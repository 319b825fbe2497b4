"""Months as they pass in a memory that is compared with others, and what is said of several languages."""

from datetime import timedelta

from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.evaluation.corpus import make_corpus
from memoryos_pipeline.evaluation.generated import generated_data
from memoryos_pipeline.evaluation.tiers import MONTH, VARIANTS, Told, _months, across_languages


class TestMonths:
    def test_every_line_is_told_once_in_its_month_and_late_ones_at_last(self) -> None:
        """Nothing is left out, no month goes back, and what comes late comes after all else."""
        told = Told(make_corpus("en", 1, people=2), generated_data(["en"]))
        lines = told.lines
        months = list(_months(lines))

        assert sorted(line.turn_id for _, said in months for line in said) == sorted(line.turn_id for line in lines)
        assert all(passed > 0 for passed, _ in months)
        first, at = min(line.at for line in lines), -1
        for passed, said in months:
            at += passed
            assert all(line.at - first < MONTH * (at + 1) for line in said)
        assert [line for _, said in months[:-1] for line in said if line.late] == []

    def test_lives_end_with_the_talks(self) -> None:
        """So that what is asked last is as old in both; distances within a life stay."""
        told = Told(make_corpus("ja", 1, people=1), generated_data(["ja"]))
        by_kind: dict[bool, list[timedelta]] = {True: [], False: []}
        end = max(line.at for line in told.lines)
        for line in told.lines:
            by_kind[line.user_id.startswith("generated")].append(end - line.at)

        assert min(by_kind[True]) == min(by_kind[False]) == timedelta(0)
        life = [line.at for line in told.lives.lines]
        assert max(by_kind[False]) == max(life) - min(life)


class TestVariants:
    def test_each_does_without_exactly_what_it_says(self) -> None:
        """The full memory does and searches everything; the others differ from it in one thing."""
        full = VARIANTS["full"]
        assert VARIANTS["without cold"].works == full.works - {WorkKind.DISTILL, WorkKind.MERGE, WorkKind.FORGET}
        assert VARIANTS["without forgetting"].policy.forget == "none"
        assert VARIANTS["without warm"].recalls == ("knowledge",)
        assert (VARIANTS["hot only"].works, VARIANTS["hot only"].recalls) == ({WorkKind.ADVANCE}, ())


class TestReport:
    def test_shares_are_averaged_and_items_added(self) -> None:
        """A figure that a language has not does not count as zero."""
        rows = {
            "en": {"r10": 0.5, "old_truth_live": None, "live_items": 3},
            "ko": {"r10": 1.0, "old_truth_live": 0.2, "live_items": 4},
        }
        assert across_languages(rows) == {"r10": 0.75, "old_truth_live": 0.2, "live_items": 7, "by_language": rows}
