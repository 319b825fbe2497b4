"""Rank bias of knowledge that fades only in rank: a bounded factor, never a filter. Pure."""

import numpy as np

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.recall.features import Candidates
from memoryos_pipeline.recall.gather import KNOWLEDGE
from memoryos_pipeline.recall.scoring import Ranking, order_of


def biased(ranking: Ranking, candidates: Candidates, policy: Policy) -> Ranking:
    """Return the ranking with the score of knowledge times `bias_low` to `bias_high` by weight, under `bounded_bias`.

    What it changes is the signal `bias`, so the signals of a candidate still sum to its score.
    """
    weights = candidates.features.get("vitality")
    if policy.forget != "bounded_bias" or weights is None:
        return ranking
    fading = (candidates.kinds == KNOWLEDGE) & ~np.isnan(weights) & (ranking.scores > 0)
    factor = policy.bias_low + (policy.bias_high - policy.bias_low) * np.clip(weights, 0.0, 1.0)
    bias = np.where(fading, ranking.scores * (factor - 1.0), 0.0)
    scores = ranking.scores + bias
    order = order_of(candidates, scores)
    return Ranking(order[np.isin(order, ranking.order)], scores, {**ranking.signals, "bias": bias})
