"""Ranks candidates as another memory would: `domain.ranking_profiles` over the recorded columns. Pure."""

from dataclasses import replace

import numpy as np

from memoryos_pipeline.domain.ranking import Candidate
from memoryos_pipeline.domain.ranking_profiles import OURS, PARITY, SAME_AS, Signals
from memoryos_pipeline.recall.columns import Flags, Floats, Places, uuid_at
from memoryos_pipeline.recall.features import Candidates
from memoryos_pipeline.recall.gather import KINDS
from memoryos_pipeline.recall.scoring import Ranking, order_of, rank


def rank_as(profile: str, candidates: Candidates, *, query_terms: int, passing: Flags | None = None) -> Ranking:
    """Return what the named profile retrieves of those `passing`, best first; only our own retrieve all of them.

    Ours score what does not pass beside the rest, as context; the others score as if there was nothing else.
    Raises KeyError when there is no such profile.
    """
    name = SAME_AS.get(profile, profile)
    places = np.arange(len(candidates)) if passing is None else np.flatnonzero(passing)
    if name in OURS:
        ranking = rank(candidates, OURS[name])
        return ranking if passing is None else replace(ranking, order=ranking.order[passing[ranking.order]])
    scored: list[Signals | None] = [None] * len(candidates)
    for place, given in zip(places, PARITY[name](_rows(candidates, places), query_terms), strict=True):
        scored[place] = given
    signals = _columns(scored)
    scores: Floats = sum(signals.values(), np.zeros(len(candidates)))
    is_retrieved = np.array([given is not None for given in scored], dtype=np.bool_)
    order = order_of(candidates, scores)
    return Ranking(order[is_retrieved[order]], scores, signals)


def _rows(candidates: Candidates, places: Places) -> list[Candidate]:
    known = {name: (column, ~np.isnan(column)) for name, column in candidates.features.items()}
    return [
        Candidate(
            KINDS[candidates.kinds[place]],
            uuid_at(candidates.owner_ids, place),
            {name: float(column[place]) for name, (column, is_known) in known.items() if is_known[place]},
        )
        for place in places
    ]


def _columns(scored: list[Signals | None]) -> dict[str, Floats]:
    names = dict.fromkeys(name for given in scored if given for name in given)
    return {name: np.array([(given or {}).get(name, 0.0) for given in scored]) for name in names}
