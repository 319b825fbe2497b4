"""What the scores of many questions say: means with intervals, overall and by category. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from memoryos_pipeline.evaluation.ablation import Asked, ablate
from memoryos_pipeline.evaluation.asking import RESULTS, Scored
from memoryos_pipeline.evaluation.metrics import auroc, bootstrap_interval

PERCENT = 100.0
BRIEF = ("r5", "r10", "r20", "all10", "ndcg10", "mrr", "session5")


def summarize(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return the report: overall figures in percent, their 95 % intervals, categories with n, time, degraded."""
    headline = [each for each in scored if each.question.is_headline]
    times = [each.search_ms for each in scored]
    return {
        "n": len(headline),
        **means(headline),
        "interval95": _intervals(headline),
        **_not_said(scored),
        "tier_spread": None,
        "by_category": _by_category(scored),
        "results_by_kind": _kinds(headline),
        "degraded": sum(each.degraded for each in scored),
        "search_ms": {"mean": _rounded(fmean(times)), "p50": _rounded(median(times))} if times else None,
    }


def compare(by_profile: Mapping[str, Sequence[Scored]]) -> dict[str, dict[str, Any]]:
    """Return for every profile the scores of its ranked lists, overall and R@10 by category, in percent."""
    return {
        name: {
            **{score: value for score, value in means(each for each in scored if each.question.is_headline).items()
               if score in BRIEF},
            "r10_by_category": {key: row["r10"] for key, row in _by_category(scored).items()},
        }
        for name, scored in by_profile.items()
    }  # fmt: skip


def summarize_ablation(scored: Iterable[Scored]) -> dict[str, float]:
    """Return R@10 in percent without each signal, and without `nothing`."""
    asked = [Asked(each.recorded, each.question.gold) for each in scored if each.question.is_headline]
    return {name: _rounded(PERCENT * value) for name, value in ablate(asked).items()}


def across_tiers(reports: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the first report, and of several how far apart R@10 (in percent) lies between tiers."""
    first = next(iter(reports.values()))
    if len(reports) == 1:
        return first
    by_tier = {tier: report["r10"] for tier, report in reports.items()}
    return {
        **first,
        "r10_by_tier": by_tier,
        "tier_spread": _rounded(max(by_tier.values()) - min(by_tier.values())),
    }


def means(scored: Iterable[Scored]) -> dict[str, float]:
    """Return the mean of each score in percent; a score that not every question has is left out."""
    rows = [each.scores for each in scored]
    names = [name for name in (rows[0] if rows else ()) if all(name in row for row in rows)]
    return {name: _rounded(PERCENT * fmean(row[name] for row in rows)) for name in names}


def _not_said(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return how well the doubt tells questions about the wrong person from the others, and of how many."""
    doubted = [(each.question.is_headline, each.not_said) for each in scored if each.not_said is not None]
    wrong = [doubt for is_headline, doubt in doubted if not is_headline]
    right = [doubt for is_headline, doubt in doubted if is_headline]
    value = auroc(wrong, right)
    return {
        "auroc5": None if value is None else round(value, 4),
        "auroc5_n": {"wrong_person": len(wrong), "right_person": len(right), "no_doubt": len(scored) - len(doubted)},
    }


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
