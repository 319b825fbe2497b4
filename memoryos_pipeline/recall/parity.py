"""Ranks candidates as another memory would: `domain.ranking_profiles` over the recorded columns. Pure."""

import numpy as np

from memoryos_pipeline.domain.ranking import DEFAULT, Candidate
from memoryos_pipeline.domain.ranking_profiles import PARITY, SAME_AS, Signals
from memoryos_pipeline.recall.columns import Floats, uuid_at
from memoryos_pipeline.recall.features import Candidates
from memoryos_pipeline.recall.gather import KINDS
from memoryos_pipeline.recall.scoring import Ranking, order_of, rank


def rank_as(profile: str, candidates: Candidates, *, query_terms: int) -> Ranking:
    """Return what the named profile retrieves, best first; only the default retrieves every candidate.

    Raises KeyError when there is no such profile.
    """
    name = SAME_AS.get(profile, profile)
    if name == DEFAULT.name:
        return rank(candidates)
    scored = PARITY[name](_rows(candidates), query_terms)
    signals = _columns(scored)
    scores: Floats = sum(signals.values(), np.zeros(len(candidates)))
    is_retrieved = np.array([given is not None for given in scored], dtype=np.bool_)
    order = order_of(candidates, scores)
    return Ranking(order[is_retrieved[order]], scores, signals)


def _rows(candidates: Candidates) -> list[Candidate]:
    known = {name: (column, ~np.isnan(column)) for name, column in candidates.features.items()}
    return [
        Candidate(
            KINDS[candidates.kinds[place]],
            uuid_at(candidates.owner_ids, place),
            {name: float(column[place]) for name, (column, is_known) in known.items() if is_known[place]},
        )
        for place in range(len(candidates))
    ]


def _columns(scored: list[Signals | None]) -> dict[str, Floats]:
    names = dict.fromkeys(name for given in scored if given for name in given)
    return {name: np.array([(given or {}).get(name, 0.0) for given in scored]) for name in names}
