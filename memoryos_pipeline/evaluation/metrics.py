"""Scores of one ranked list against the turns that hold the answer, and what many such scores say together. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence

RESAMPLES = 1_000
SEED = 20_260_101
"""Intervals are the same every time they are computed from the same scores."""


def expand(results: Iterable[Sequence[str]]) -> list[str]:
    """Return the distinct turn ids that results stand for, in order: each result in its own order, repeats dropped."""
    return list(dict.fromkeys(turn for result in results for turn in result))


def recall_at(found: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the share of gold among the first `k` found. Gold is never empty."""
    return len(gold.intersection(found[:k])) / len(gold)


def all_at(found: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return 1 when every gold turn is among the first `k` found, else 0."""
    return float(gold.issubset(found[:k]))


def any_at(found: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return 1 when at least one gold is among the first `k` found, else 0."""
    return float(not gold.isdisjoint(found[:k]))


def ndcg_at(found: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the discounted gain of the first `k` over that of a perfect order; each gold turn gains 1."""
    gained = sum(1 / math.log2(place + 2) for place, turn in enumerate(found[:k]) if turn in gold)
    perfect = sum(1 / math.log2(place + 2) for place in range(min(k, len(gold))))
    return gained / perfect


def reciprocal_rank(found: Sequence[str], gold: frozenset[str]) -> float:
    """Return 1 over the place of the first gold turn, 0 when none was found."""
    return next((1 / place for place, turn in enumerate(found, start=1) if turn in gold), 0.0)


def session_any_at(found: Sequence[str], gold: frozenset[str], session_of: Mapping[str, str], k: int) -> float:
    """Return 1 when a session with a gold turn is among the first `k` distinct sessions found, else 0."""
    sessions = list(dict.fromkeys(session_of[turn] for turn in found))
    return any_at(sessions, frozenset(session_of[turn] for turn in gold), k)


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """Return how often a positive outscores a negative, a tie counting half; None without either."""
    if not positives or not negatives:
        return None
    won = sum((high > low) + (high == low) / 2 for high in positives for low in negatives)
    return won / (len(positives) * len(negatives))


def bootstrap_interval(scores: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over resampled questions. Raises ValueError without scores."""
    import numpy as np  # noqa: PLC0415 - commands that measure nothing start without it

    if not scores:
        raise ValueError("an interval needs at least one score")
    values = np.asarray(scores, dtype=np.float64)
    drawn = np.random.default_rng(SEED).integers(0, len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
