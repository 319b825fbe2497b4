"""Scores what a memory holds to be true against lives of which it is known, without any judge model."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memoryos_pipeline.domain.links import said_words
from memoryos_pipeline.evaluation.corpus import Corpus, Line
from memoryos_pipeline.readmodels.known import Known

RETIRED = frozenset({"superseded", "closed"})
MEASURES = (
    "old_truth_live", "wrongly_retired", "history_complete", "duplicates", "homonym_mixups", "new_truth_live",
    "facts_found", "corrections_linked",
)  # fmt: skip
WORST_IS_HIGHEST = frozenset({"old_truth_live", "wrongly_retired", "duplicates", "homonym_mixups"})
TARGETS = {
    "old_truth_live": 0.05, "wrongly_retired": 0.02, "history_complete": 1.0, "duplicates": 0.01,
    "homonym_mixups": 0.0, "new_truth_live": 0.90, "facts_found": 0.85,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Count:
    """So many out of so many; `homonym_mixups` is a plain number."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """The hits' share; of nothing it is 0."""
        return self.hits / self.of if self.of else 0.0


class Scorer:
    """One corpus beside what is known of it."""

    def __init__(self, corpus: Corpus, known: Iterable[Known]) -> None:
        self._corpus = corpus
        self._lines = {line.turn_id: line for line in corpus.lines}
        self._rows = [row for row in known if any(turn_id in self._lines for turn_id in row.turn_ids)]
        self._by_id = {row.knowledge_id: row for row in self._rows}
        self._of_turn: dict[str, list[Known]] = defaultdict(list)
        for row in self._rows:
            for turn_id in row.turn_ids:
                self._of_turn[turn_id].append(row)

    def counts(self) -> dict[str, Count]:
        """Return every measure."""
        applied = [pair for pair in self._corpus.changes if self._is_applied(*pair)]
        truths = Counter(truth for row in self._rows if row.status == "active" and (truth := self.truth_of(row)))
        return {
            "old_truth_live": _count(self._is_live(old) for old, _ in self._corpus.changes),
            "wrongly_retired": _count(self._is_retired(pair) for pair in self._corpus.compatible),
            "history_complete": _count(self._is_history(old, new) for old, new in applied),
            "duplicates": Count(sum(truths.values()) - len(truths), sum(truths.values())),
            "homonym_mixups": _count(self._is_mixed_up(*pair) for pair in self._corpus.homonyms),
            "new_truth_live": _count(self._is_live(new) for new in self._final),
            "facts_found": _count(self.is_found(turn_id) for turn_id in self._corpus.facts),
            "corrections_linked": _count(self._is_linked(*pair) for pair in self._corpus.corrections),
        }

    def truth_of(self, row: Known) -> str | None:
        """Return what a row says to be so: what the line said that it quotes, or else the first it cites."""
        cited = sorted((self._lines[t] for t in row.turn_ids if t in self._lines), key=lambda line: line.at)
        said = said_words(row.content, row.actor)
        return next((line for line in cited if said in line.text), cited[0]).truth

    def is_found(self, turn_id: str) -> bool:
        """Tell whether some row, live or not, says what the line says and cites it."""
        return bool(self._rows_of(turn_id))

    @cached_property
    def _final(self) -> list[str]:
        changed_again = {old for old, _ in self._corpus.changes}
        return [new for _, new in self._corpus.changes if new not in changed_again]

    def _rows_of(self, turn_id: str) -> list[Known]:
        truth = self._lines[turn_id].truth
        return [row for row in self._of_turn[turn_id] if truth is None or self.truth_of(row) == truth]

    def _is_live(self, turn_id: str) -> bool:
        return any(row.status == "active" for row in self._rows_of(turn_id))

    def _is_retired(self, pair: Sequence[str]) -> bool:
        return any(
            not self._is_live(turn_id) and any(row.status in RETIRED for row in self._rows_of(turn_id))
            for turn_id in pair
        )

    def _is_applied(self, old: str, new: str) -> bool:
        return self.is_found(old) and self.is_found(new) and not self._is_live(old)

    def _is_history(self, old: str, new: str) -> bool:
        """The older statement is still read, held from its own turn to the newer one's, which is named in its place."""
        before, after = self._lines[old], self._lines[new]
        return any(_was_true(row, before, after, self._successors(row)) for row in self._rows_of(old)) and any(
            row.valid_from == after.at for row in self._rows_of(new)
        )

    def _successors(self, row: Known) -> list[str | None]:
        """Return what took a row's place, and what took the place of that."""
        found: list[str | None] = []
        while row.superseded_by in self._by_id and len(found) < len(self._rows):
            row = self._by_id[row.superseded_by]
            found.append(self.truth_of(row))
        return found[:1]

    def _is_mixed_up(self, one: str, other: str) -> bool:
        truths = {self._lines[one].truth, self._lines[other].truth}
        shared = {row.knowledge_id for row in self._of_turn[one]} & {row.knowledge_id for row in self._of_turn[other]}
        ended = [row for turn in (one, other) for row in self._of_turn[turn] if row.status in RETIRED]
        return bool(shared) or any(truths.issuperset(self._successors(row)) for row in ended if row.superseded_by)

    def _is_linked(self, wrong: str, right: str) -> bool:
        return any(
            row.kind == "correction" and row.status == "active" and wrong in row.turn_ids
            for row in self._of_turn[right]
        )


def _was_true(row: Known, before: Line, after: Line, successors: Sequence[str | None]) -> bool:
    is_closed = row.status in RETIRED and row.valid_to == after.at
    return is_closed and row.valid_from == before.at and list(successors) == [after.truth]


def _count(hits: Iterable[bool]) -> Count:
    every = list(hits)
    return Count(sum(every), len(every))


def summarize_runs(runs: Sequence[tuple[Corpus, dict[str, Count]]]) -> dict[str, Any]:
    """Return per language and measure the worst seed's share, with its denominator, and every seed's share."""
    languages = {lang: [run for run in runs if run[0].lang == lang] for lang in dict.fromkeys(c.lang for c, _ in runs)}
    by_language = {lang: _worst(of_lang) for lang, of_lang in languages.items()}
    overall = {name: _worse(name, [row[name] for row in by_language.values()]) for name in MEASURES}
    missed = [f"{lang} {name}" for lang, row in by_language.items() for name in TARGETS if not meets(name, row[name])]
    return {
        **overall, "targets": TARGETS, "missed": missed, "by_language": by_language,
        "seeds": sorted({c.seed for c, _ in runs}),
        "denominators": {lang: _least(of_lang) for lang, of_lang in languages.items()},
    }  # fmt: skip


def meets(name: str, value: float) -> bool:
    """Tell whether a measure reaches its target."""
    return value <= TARGETS[name] if name in WORST_IS_HIGHEST else value >= TARGETS[name]


def _worst(runs: Sequence[tuple[Corpus, dict[str, Count]]]) -> dict[str, float]:
    return {name: _worse(name, [_value(name, counts[name]) for _, counts in runs]) for name in MEASURES}


def _least(runs: Sequence[tuple[Corpus, dict[str, Count]]]) -> dict[str, int]:
    return {name: min(counts[name].of for _, counts in runs) for name in MEASURES}


def _value(name: str, count: Count) -> float:
    return float(count.hits) if name == "homonym_mixups" else round(count.share, 4)


def _worse(name: str, values: Sequence[float]) -> float:
    return max(values) if name in WORST_IS_HIGHEST else min(values)
