"""Which pages belong together: segments found by nearness of summaries and shared keywords. Pure."""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import mul, sub
from typing import Literal
from uuid import UUID

from memoryos_pipeline.domain.heat import is_promoted, recency_of, segment_heat
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.policies import Policy

MAX_KEYWORDS = 24
"""A segment keeps this many, so that a long life does not dilute what its keywords say."""

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class SegmentPage:
    """A page on its way into a segment; without a vector its keywords alone decide.

    `common` is what any two texts of its language share in this vector space; nearness is judged without it.
    """

    page_id: UUID
    summary: str
    keywords: tuple[str, ...]
    topics: tuple[str, ...]
    vector: Vector | None
    common: Vector | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Pages about one thing. `waiting` are those not handed to distillation yet, in order."""

    segment_id: UUID
    theme: str
    summary: str
    keywords: tuple[str, ...]
    centroid: Vector | None
    n_visit: int
    l_interaction: int
    last_visit_at: datetime
    heat: float
    page_count: int
    waiting: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Handed:
    """A page handed to distillation, why, and for which segment."""

    page_id: UUID
    segment_id: UUID | None
    cause: Literal["heated", "sealed", "cooled", "evicted"]


@dataclass(slots=True)
class SegmentPlan:
    """What assigning pages changes: who goes where, the segments as they are then, and what is distilled."""

    assigned: list[tuple[UUID, UUID]] = field(default_factory=list)
    changed: dict[UUID, Segment] = field(default_factory=dict)
    handed: list[Handed] = field(default_factory=list)


def jaccard(left: Iterable[str], right: Iterable[str]) -> float:
    """Return shared over all of two keyword sets; 0 when both are empty."""
    a, b = set(left), set(right)
    return len(a & b) / len(a | b) if a | b else 0.0


def mean_overlap(left: AbstractSet[str], right: AbstractSet[str]) -> float:
    """Return the mean of the two overlap ratios, as the evaluation code of BAI-LAB has it."""
    shared = len(left & right)
    return (shared / len(left) + shared / len(right)) / 2 if left and right else 0.0


def cosine(left: Vector, right: Vector) -> float:
    """Return the cosine of two vectors; 0 when one of them has no direction."""
    norms = _norm(left) * _norm(right)
    return sum(map(mul, left, right)) / norms if norms else 0.0


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """Return the mean of vectors of one length."""
    return [sum(numbers) / len(vectors) for numbers in zip(*vectors, strict=True)]


def match_score(cosine_value: float, jaccard_value: float) -> float:
    """Return how well a page fits a segment; a negative cosine counts as none."""
    return max(0.0, cosine_value) + jaccard_value


def move_centroid(centroid: Vector | None, vector: Vector | None, *, page_count: int) -> Vector | None:
    """Return the direction of a segment of `page_count` pages after one more; a unit vector in half precision."""
    if centroid is None or vector is None:
        return vector if centroid is None else centroid
    total = [old * page_count + new for old, new in zip(centroid, vector, strict=True)]
    norm = _norm(total)
    return _as_stored([number / norm for number in total]) if norm else centroid


def choose_segment(page: SegmentPage, segments: Iterable[Segment], *, match: float) -> Segment | None:
    """Return the best fitting segment at or above `match`, of equals the first; None when a new one is due."""
    best, best_score = None, match
    for segment in segments:
        score = match_score(_nearness(page, segment), jaccard(page.keywords, segment.keywords))
        if score > best_score or (best is None and score >= match):
            best, best_score = segment, score
    return best


def assign_pages(
    pages: Iterable[SegmentPage], segments: Sequence[Segment], *, now: datetime, policy: Policy
) -> SegmentPlan:
    """Assign pages one after the other, so that how many come at once makes no difference."""
    known = {segment.segment_id: segment for segment in segments}
    plan = SegmentPlan()
    for page in pages:
        chosen = choose_segment(page, known.values(), match=policy.segment_match)
        segment = _join(chosen, page, now=now) if chosen else _open(page, now=now)
        plan.assigned.append((page.page_id, segment.segment_id))
        if policy.distill_when == "sealed":
            plan.handed.append(Handed(page.page_id, segment.segment_id, "sealed"))
            segment = replace(segment, waiting=())
        segment = _settle(segment, plan, now=now, policy=policy)
        known[segment.segment_id] = plan.changed[segment.segment_id] = segment
    return plan


def visit_segments(visits: Iterable[tuple[Segment, int, datetime]], *, now: datetime, policy: Policy) -> SegmentPlan:
    """Count visits (segment, how many, the last one), and hand over the pages of segments they made hot."""
    plan = SegmentPlan()
    for segment, count, last in visits:
        moment = max(segment.last_visit_at, last)
        visited = replace(segment, n_visit=segment.n_visit + count, last_visit_at=moment)
        plan.changed[segment.segment_id] = _settle(visited, plan, now=now, policy=policy)
    return plan


def _settle(segment: Segment, plan: SegmentPlan, *, now: datetime, policy: Policy) -> Segment:
    """Return the segment with its heat as of now; a hot one hands its pages over, its counters start again."""
    warmed = _heated(segment, now, policy)
    if not is_promoted(warmed.heat, waiting_pages=len(warmed.waiting), policy=policy):
        return warmed
    plan.handed += [Handed(page_id, segment.segment_id, "heated") for page_id in warmed.waiting]
    visits = 0 if policy.reset_on_extract == "NL" else warmed.n_visit
    pages = warmed.l_interaction if policy.reset_on_extract == "none" else 0
    return _heated(replace(warmed, n_visit=visits, l_interaction=pages, waiting=()), now, policy)


def _heated(segment: Segment, now: datetime, policy: Policy) -> Segment:
    heat = segment_heat(
        n_visit=segment.n_visit,
        l_interaction=segment.l_interaction,
        recency_now=recency_of(now - segment.last_visit_at, policy),
        weights=(policy.segment_visit_weight, policy.segment_page_weight, policy.segment_recency_weight),
    )
    return replace(segment, heat=heat)


def _join(segment: Segment, page: SegmentPage, *, now: datetime) -> Segment:
    return replace(
        segment,
        keywords=tuple(_merged_keywords(segment.keywords, page.keywords)),
        centroid=move_centroid(segment.centroid, page.vector, page_count=segment.page_count),
        l_interaction=segment.l_interaction + 1,
        last_visit_at=max(now, segment.last_visit_at),
        page_count=segment.page_count + 1,
        waiting=(*segment.waiting, page.page_id),
    )


def _open(page: SegmentPage, *, now: datetime) -> Segment:
    return Segment(
        segment_id=derive_id("segment", page.page_id),
        theme=next(iter((*page.topics, *page.keywords)), ""),
        summary=page.summary,
        keywords=page.keywords[:MAX_KEYWORDS],
        centroid=page.vector,
        n_visit=0,
        l_interaction=1,
        last_visit_at=now,
        heat=0.0,
        page_count=1,
        waiting=(page.page_id,),
    )


def _merged_keywords(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield shared keywords first, then the segment's, then the page's, up to the bound."""
    shared = [word for word in old if word in new]
    yield from list(dict.fromkeys([*shared, *old, *new]))[:MAX_KEYWORDS]


def _nearness(page: SegmentPage, segment: Segment) -> float:
    if page.vector is None or segment.centroid is None:
        return 0.0
    return cosine(_without(page.vector, page.common), _without(segment.centroid, page.common))


def _without(vector: Vector, common: Vector | None) -> Vector:
    return vector if common is None else list(map(sub, vector, common))


def _as_stored(vector: Vector) -> Vector:
    # Centroids are kept in half precision; carried on more precisely, pages in one run would fit otherwise
    # than the same pages in several.
    layout = f"{len(vector)}e"
    return struct.unpack(layout, struct.pack(layout, *vector))


def _norm(vector: Vector) -> float:
    return math.sqrt(sum(map(mul, vector, vector)))
