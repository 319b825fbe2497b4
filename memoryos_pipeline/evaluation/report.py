"""What the scores of many questions say: means with intervals, overall and by category. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from memoryos_pipeline.evaluation.asking import RESULTS, Scored
from memoryos_pipeline.evaluation.metrics import bootstrap_interval

PERCENT = 100.0
NO_AUROC = "recall gives no signal for `not said by that person`; category 5 cannot be judged yet"


def summarize(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return the report: overall figures in percent, their 95 % intervals, categories with n, time, degraded."""
    headline = [each for each in scored if each.question.is_headline]
    times = [each.search_ms for each in scored]
    return {
        "n": len(headline),
        **means(headline),
        "interval95": _intervals(headline),
        "auroc5": None,
        "auroc5_note": NO_AUROC,
        "by_category": _by_category(scored),
        "results_by_kind": _kinds(headline),
        "degraded": sum(each.degraded for each in scored),
        "search_ms": {"mean": _rounded(fmean(times)), "p50": _rounded(median(times))} if times else None,
    }


def means(scored: Iterable[Scored]) -> dict[str, float]:
    """Return the mean of each score in percent; a score that not every question has is left out."""
    rows = [each.scores for each in scored]
    names = [name for name in (rows[0] if rows else ()) if all(name in row for row in rows)]
    return {name: _rounded(PERCENT * fmean(row[name] for row in rows)) for name in names}


def _intervals(scored: Sequence[Scored]) -> dict[str, list[float]]:
    return {
        name: [_rounded(PERCENT * end) for end in bootstrap_interval([each.scores[name] for each in scored])]
        for name in means(scored)
    }


def _by_category(scored: Sequence[Scored]) -> dict[str, dict[str, float]]:
    names = sorted({each.question.category for each in scored})
    grouped: Mapping[str, list[Scored]] = {
        name: [each for each in scored if each.question.category == name] for name in names
    }
    return {name: {"n": len(group), **means(group)} for name, group in grouped.items()}


def _kinds(scored: Sequence[Scored]) -> dict[str, float]:
    """Return how many of the results of a search are of each kind, on average."""
    shown = [kind for each in scored for kind in each.kinds[:RESULTS]]
    return {kind: _rounded(shown.count(kind) / len(scored)) for kind in sorted(set(shown))}


def _rounded(value: float) -> float:
    return round(value, 2)
