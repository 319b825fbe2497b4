"""Ranks candidates: `domain.ranking.rank` over columns, a thousand candidates at a time. Pure.

The formula is the domain's; a test holds the two to the same order and the same signals.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from memoryos_pipeline.domain.ranking import (
    BASE_SIGNALS,
    CONTEXT_SIGNALS,
    COSINE_OF_WORDS,
    DEFAULT,
    EXPECTED_COSINE,
    LEAST_SPREAD,
    SESSION_BEST,
    SESSION_BREAK,
    SHARES,
    STAND_IN,
    Profile,
)
from memoryos_pipeline.recall.columns import Floats, Places, best_of, take
from memoryos_pipeline.recall.features import Candidates, TurnPlaces


@dataclass(frozen=True, slots=True)
class Ranking:
    """Positions of the candidates, best first; the score of each candidate and what each signal gave to it."""

    order: Places
    scores: Floats
    signals: Mapping[str, Floats]

    def signals_of(self, position: int) -> dict[str, float]:
        """Return what gave something to one candidate; it sums to its score."""
        return {name: float(column[position]) for name, column in self.signals.items() if column[position]}


def rank(candidates: Candidates, profile: Profile = DEFAULT) -> Ranking:
    """Return every candidate, best first; ties are broken by the newer turn, then by id, never by chance."""
    scaled = {name: _scaled(candidates, name) for name in profile.weights if name not in CONTEXT_SIGNALS}
    shares = profile.shares()
    if "dense" in shares and "bm25" in scaled:
        shares[STAND_IN] = shares["dense"]
        words = EXPECTED_COSINE + COSINE_OF_WORDS * scaled["bm25"]
        scaled[STAND_IN] = np.where(np.isnan(_column(candidates, "dense")), words, 0.0)
    base = np.zeros(len(candidates))
    for name in BASE_SIGNALS:
        if name in scaled:
            base += shares[name] * scaled[name]
    scaled |= {name: scale(column) for name, column in _context(candidates, base).items() if name in shares}
    signals = {name: share * scaled[name] for name, share in shares.items()}
    scores = np.zeros(len(candidates))
    for given in signals.values():
        scores += given
    return Ranking(order_of(candidates, scores), scores, signals)


def scale(column: Floats, least_spread: float = 0.0) -> Floats:
    """Return the column min-max scaled to [0, 1]; unknown values become 0, a constant positive column 1.

    A column that spreads less than `least_spread` stays below 1: differences that small are noise.
    """
    is_known = ~np.isnan(column)
    if not is_known.any():
        return np.zeros(len(column))
    low, high = float(column[is_known].min()), float(column[is_known].max())
    if high <= low:
        return np.where(is_known, 1.0 if high > 0 else 0.0, 0.0)
    scaled: Floats = np.where(is_known, (column - low) / max(high - low, least_spread), 0.0)
    return scaled


def _scaled(candidates: Candidates, name: str) -> Floats:
    column = _column(candidates, name)
    if name in SHARES:
        shares: Floats = np.nan_to_num(column)
        return shares
    return scale(column, LEAST_SPREAD.get(name, 0.0))


def _column(candidates: Candidates, name: str) -> Floats:
    found = candidates.features.get(name)
    if name == "entity" and found is not None:
        owners = candidates.features.get("entity_owners", np.ones(len(candidates)))
        return found * (1.0 / (1.0 + 0.001 * (np.nan_to_num(owners, nan=1.0) - 1.0) ** 2))
    return np.full(len(candidates), np.nan) if found is None else found


def _context(candidates: Candidates, base: Floats) -> dict[str, Floats]:
    """Return what neighbours and sessions give: turns by their place, knowledge from the best of its source turns."""
    turns = candidates.turns
    said = base[: len(turns.seqs)]
    own, count = turns.find(candidates.conversations, candidates.seqs), len(candidates)
    near = {step: turns.find(candidates.conversations, candidates.seqs + step) for step in (-1, 1)}
    lent = {"previous": take(said, near[-1]), "next": take(said, near[1]), "session": take(_sessions(turns, said), own)}
    return {name: best_of(values, candidates.lenders, count=count) for name, values in lent.items()}


def _sessions(turns: TurnPlaces, said: Floats) -> Floats:
    """Return for each turn the mean of the best three of its session. Turns are in order of conversation and seq."""
    if not len(said):
        return said
    silence = np.diff(turns.at) >= SESSION_BREAK.total_seconds()
    session = np.concatenate([[0], np.cumsum(silence | (np.diff(turns.conversations) != 0))])
    order = np.lexsort((-said, session))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(session) != 0]))
    sizes = np.diff(np.concatenate([starts, [len(said)]]))
    total = np.zeros(len(starts))
    for place in range(SESSION_BEST):
        has = sizes > place
        total[has] += said[order][starts[has] + place]
    means: Floats = (total / np.minimum(sizes, SESSION_BEST))[session]
    return means


def order_of(candidates: Candidates, scores: Floats) -> Places:
    """Return the candidates best first; ties are broken by the newer turn, then by id."""
    newest = np.zeros(len(scores))
    newest[: len(candidates.turns.at)] = -candidates.turns.at
    return np.lexsort((candidates.owner_ids, newest, -scores))
