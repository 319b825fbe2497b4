"""One step along the links of the best statements, as A-Mem reads: what belongs to a hit comes along with it."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from memoryos_pipeline.recall.columns import uuid_at
from memoryos_pipeline.recall.gather import KNOWLEDGE
from memoryos_pipeline.recall.results import Ranked
from memoryos_pipeline.recall.scoring import Ranking, order_of
from memoryos_pipeline.store.links import read_links_of
from memoryos_pipeline.store.search import ScopeKey

PROFILES = frozenset({"a_mem"})
"""The profiles that follow links."""
SEEDS = 10
"""The best statements whose links are followed: A-Mem's k."""


def with_links(connection: Connection, key: ScopeKey, ranked: Ranked) -> Ranked:
    """Return the ranking in which a statement is worth at least its link's weight of the best statement linked to it.

    Only candidates come along; what is lifted has the signal `link`, and signals still sum to the score.
    """
    candidates = ranked.candidates
    known = [int(place) for place in ranked.order if candidates.kinds[place] == KNOWLEDGE]
    place_of = {uuid_at(candidates.owner_ids, place): place for place in known}
    links = read_links_of(connection, key.tenant_id, list(place_of)[:SEEDS])
    ranking = _lifted(ranked, place_of, links)
    return replace(ranked, ranking=ranking, order=ranking.order[np.isin(ranking.order, ranked.order)])


def _lifted(ranked: Ranked, place_of: dict[UUID, int], links: Sequence[tuple[UUID, UUID, float]]) -> Ranking:
    ranking, lift = ranked.ranking, np.zeros(len(ranked.candidates))
    seeds = set(list(place_of)[:SEEDS])
    for seed, target, weight in links:
        place = place_of.get(target)
        if place is not None and target not in seeds:
            worth = min(1.0, weight) * ranking.scores[place_of[seed]]
            lift[place] = max(lift[place], worth - ranking.scores[place])
    scores = ranking.scores + lift
    order = order_of(ranked.candidates, scores)
    return Ranking(order[np.isin(order, ranking.order)], scores, {**ranking.signals, "link": lift})
