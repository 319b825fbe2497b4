"""How candidates become a ranking: scaled signals, named weights, one sum. Pure.

Every signal is min-max scaled over the union of all candidates and multiplied by its weight; the contributions sum to
the score. Weights are divided by the sum of the positive ones, so a score lies in [-0.1, 1] and higher is better.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Literal
from uuid import UUID

OwnerKind = Literal["turn", "page", "knowledge"]

SESSION_BREAK = timedelta(hours=6)
"""A silence this long between two candidates of a conversation starts another session."""
SESSION_BEST = 3
LEAST_SPREAD: Mapping[str, float] = {"dense": 0.04}
"""In a handful of unrelated turns the cosines differ by less than this, and their order says nothing."""
SHARES = frozenset({"entity"})
"""Signals that lie between 0 and 1 as they are and are not scaled: nearly all candidates have none."""
STAND_IN = "bm25_instead_of_dense"
"""The signal that takes the weight of `dense` for a candidate that has no vector."""
EXPECTED_COSINE, COSINE_OF_WORDS = 0.4, 0.5
"""A line a little above the one measured, so that what was said last is not buried until it is embedded."""
BASE_SIGNALS = ("bm25", "dense", STAND_IN)
"""What a candidate says by itself; context signals spread these to its neighbours and its session."""
CONTEXT_SIGNALS = ("previous", "next", "session")


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of weights, one a signal. A signal without a weight is recorded and does not count."""

    name: str
    weights: Mapping[str, float]

    def shares(self) -> dict[str, float]:
        """Return the weights divided by the sum of the positive ones."""
        total = sum(weight for weight in self.weights.values() if weight > 0)
        return {name: weight / total for name, weight in self.weights.items()}


DEFAULT = Profile(
    "default",
    {
        "bm25": 0.15,
        "dense": 0.55,
        "actor": 0.4,
        "date": 0.7,
        "time_word": 0.3,
        "previous": 0.1,
        "next": 0.1,
        "window_before": 0.15,
        "window_around": 0.15,
        "session": 0.4,
        "length": 0.2,
        "question_only": -0.1,
        "vitality": 0.05,
    },
)
"""The weights of the measured sum. `vitality` (weight of knowledge, heat of a page) is the bounded decay bias."""

ENTITIES = Profile("entities", {**DEFAULT.weights, "entity": 0.1})
"""The default, and the entities a question names: statements that stand on them, or one step away."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn stands: what is next to it and which session it belongs to."""

    conversation_id: UUID
    seq: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be recalled, with its recorded features (raw, unscaled; a missing one counts as unknown).

    Turns have a `place`. Knowledge and pages name the turns they stand for in `sources` (places of candidates).
    """

    kind: OwnerKind
    owner_id: UUID
    features: Mapping[str, float]
    place: Place | None = None
    sources: tuple[tuple[UUID, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and what each signal gave to it; the signals sum to the score."""

    candidate: Candidate
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)


def rank(candidates: Sequence[Candidate], profile: Profile = DEFAULT) -> list[Ranked]:
    """Return every candidate, best first; ties are broken by the newer turn, then by id, never by chance."""
    scaled = {name: _scaled(candidates, name) for name in profile.weights if name not in CONTEXT_SIGNALS}
    shares = profile.shares()
    if "dense" in shares and "bm25" in scaled:
        shares[STAND_IN] = shares["dense"]
        scaled[STAND_IN] = _stand_in(candidates, scaled["bm25"])
    base = _weighted(scaled, shares, BASE_SIGNALS, count=len(candidates))
    for name, column in _context(candidates, base).items():
        if name in shares:
            scaled[name] = scale(column)
    ranked = []
    for index, candidate in enumerate(candidates):
        signals = {name: share * scaled[name][index] for name, share in shares.items() if scaled[name][index]}
        ranked.append(Ranked(candidate, sum(signals.values()), signals))
    return sorted(ranked, key=_order)


def scale(column: Sequence[float | None], least_spread: float = 0.0) -> list[float]:
    """Return the column min-max scaled to [0, 1]; unknown values become 0, a constant positive column 1.

    A column that spreads less than `least_spread` stays below 1: differences that small are noise.
    """
    known = [value for value in column if value is not None]
    if not known:
        return [0.0] * len(column)
    low, high = min(known), max(known)
    if high <= low:
        constant = 1.0 if high > 0 else 0.0
        return [0.0 if value is None else constant for value in column]
    spread = max(high - low, least_spread)
    return [0.0 if value is None else (value - low) / spread for value in column]


def entity_spread(owners: float) -> float:
    """Return what an entity that `owners` memories have still tells: 1 for one, less the more share it."""
    return 1.0 / (1.0 + 0.001 * (owners - 1) ** 2)


def _scaled(candidates: Sequence[Candidate], name: str) -> list[float]:
    column = _column(candidates, name)
    if name in SHARES:
        return [value or 0.0 for value in column]
    return scale(column, LEAST_SPREAD.get(name, 0.0))


def _column(candidates: Sequence[Candidate], name: str) -> list[float | None]:
    if name == "entity":
        return [_entity(candidate.features) for candidate in candidates]
    return [candidate.features.get(name) for candidate in candidates]


def _entity(features: Mapping[str, float]) -> float | None:
    strength = features.get("entity")
    return None if strength is None else strength * entity_spread(features.get("entity_owners", 1.0))


def _stand_in(candidates: Sequence[Candidate], words: Sequence[float]) -> list[float]:
    """Give a candidate without a vector (fresh, or the embedder is away) the cosine its words let expect, scaled."""
    return [
        0.0 if "dense" in each.features else EXPECTED_COSINE + COSINE_OF_WORDS * words[index]
        for index, each in enumerate(candidates)
    ]


def _weighted(
    scaled: Mapping[str, Sequence[float]], shares: Mapping[str, float], names: Sequence[str], *, count: int
) -> list[float]:
    used = [(scaled[name], shares[name]) for name in names if name in scaled]
    return [sum(share * column[index] for column, share in used) for index in range(count)]


def _context(candidates: Sequence[Candidate], base: Sequence[float]) -> dict[str, list[float | None]]:
    """Return what neighbours and sessions give: turns by their place, knowledge from the best of its source turns."""
    by_place = {
        (candidate.place.conversation_id, candidate.place.seq): base[index]
        for index, candidate in enumerate(candidates)
        if candidate.place
    }
    sessions = _session_scores(candidates, by_place)
    columns: dict[str, list[float | None]] = {name: [] for name in CONTEXT_SIGNALS}
    for candidate in candidates:
        places = places_of(candidate)
        columns["previous"].append(_best(by_place.get((where, seq - 1)) for where, seq in places))
        columns["next"].append(_best(by_place.get((where, seq + 1)) for where, seq in places))
        columns["session"].append(_best(sessions.get(place) for place in places))
    return columns


def places_of(candidate: Candidate) -> tuple[tuple[UUID, int], ...]:
    """Return (conversation, seq) of the turns a candidate lends its context from; a page has none."""
    if candidate.place:
        return ((candidate.place.conversation_id, candidate.place.seq),)
    return candidate.sources if candidate.kind == "knowledge" else ()


def _best(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def _session_scores(
    candidates: Sequence[Candidate], by_place: Mapping[tuple[UUID, int], float]
) -> dict[tuple[UUID, int], float]:
    places = sorted(
        (candidate.place for candidate in candidates if candidate.place),
        key=lambda place: (place.conversation_id, place.seq),
    )
    scores: dict[tuple[UUID, int], float] = {}
    for _, group in groupby(places, key=lambda place: place.conversation_id):
        for session in _split_by_silence(list(group)):
            keys = [(place.conversation_id, place.seq) for place in session]
            best = sorted((by_place[key] for key in keys), reverse=True)[:SESSION_BEST]
            scores.update(dict.fromkeys(keys, sum(best) / len(best)))
    return scores


def _split_by_silence(places: Sequence[Place]) -> list[list[Place]]:
    sessions: list[list[Place]] = [[places[0]]]
    for before, place in pairwise(places):
        if place.at - before.at >= SESSION_BREAK:
            sessions.append([])
        sessions[-1].append(place)
    return sessions


def _order(ranked: Ranked) -> tuple[float, float, str]:
    place = ranked.candidate.place
    return (-ranked.score, -place.at.timestamp() if place else 0.0, str(ranked.candidate.owner_id))
