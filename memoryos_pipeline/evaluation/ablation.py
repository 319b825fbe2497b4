"""What each signal is worth: recorded results ordered again without it. Pure.

Signals sum to the score of a result, so leaving one out needs no second search. Only what was among the results can
rise, so with a hundred results the loss of a strong signal is a little understated.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from memoryos_pipeline.evaluation.metrics import expand, recall_at

K = 10
STANDS_IN: Mapping[str, str] = {"bm25_instead_of_dense": "dense"}
"""A signal that takes the place of another is left out with it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One result: the turns it stands for, best first, and what each signal gave to its score."""

    turns: tuple[str, ...]
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's results in order, and the turns that answer it."""

    results: Sequence[Recorded]
    gold: frozenset[str]


def ablate(asked: Sequence[Asked]) -> dict[str, float]:
    """Return R@10 (in [0, 1]) without each signal; `nothing` holds what is compared with."""
    if not asked:
        return {}
    names = sorted({_family(name) for each in asked for result in each.results for name in result.signals})
    without = {name: _recall(asked, [other for other in names if other != name]) for name in names}
    return {"nothing": _recall(asked, names), **without}


def reorder(results: Iterable[Recorded], kept: Collection[str]) -> list[Recorded]:
    """Return the results by the sum of the signals that are kept; equals stay in their order."""
    return sorted(
        results, key=lambda each: -sum(value for name, value in each.signals.items() if _family(name) in kept)
    )


def _recall(asked: Sequence[Asked], kept: Collection[str]) -> float:
    return fmean(recall_at(expand(each.turns for each in reorder(one.results, kept)), one.gold, K) for one in asked)


def _family(name: str) -> str:
    return STANDS_IN.get(name, name)
