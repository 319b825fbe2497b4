"""The rankings of other memories, as pure functions of the features recorded of our candidates.

A profile gives every candidate its signals, which sum to its score, or leaves it out where the original would not
retrieve it. Cosines are clamped at 0, so that decay never raises a score. Where the original ranks what we do not
have, or we have what it lacks, the profile's docstring says what stands for what.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from memoryos_pipeline.domain.ranking import DEFAULT, ENTITIES, Candidate, Profile, entity_spread, scale

SEED_GAMMA = 0.6
A_MEM_ALPHA = 0.5
BAI_SEGMENTS, BAI_PASSAGES, BAI_FACTS = 5, 7, 20
BAI_LEAST_PASSAGE, BAI_LEAST_FACT = 0.1, 0.01
MEM0_LEAST_DENSE = 0.1
MEM0_ENTITY_WEIGHT, MEM0_LEAST_ENTITY = 0.5, 0.5
MEM0_SIGMOIDS = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5))
"""Up to so many terms of the question: the BM25 that counts half, and how steep it is there."""
MEM0_LONG = (12.0, 0.5)

Signals = dict[str, float]
Scoring = Callable[[Sequence[Candidate], int], list[Signals | None]]
"""From candidates and the number of terms of the question to the signals of each, None for what is not retrieved."""


def seed000(candidates: Sequence[Candidate], _: int) -> list[Signals | None]:
    """Score pages by 0.6 cosine + 0.4 heat and knowledge by cosine times weight.

    A turn is scored like a page that is as warm as can be: the original shows its latest turns whole.
    """
    return [_seed_knowledge(each) if each.kind == "knowledge" else _seed_page(each) for each in candidates]


def bai_lab(candidates: Sequence[Candidate], _: int) -> list[Signals | None]:
    """Take the 7 passages nearest to the question out of its 5 nearest segments, and 20 facts; order by cosine.

    A passage is a turn or a page. Without a recorded segment only its own cosine decides.
    """
    segments = sorted({each.features["segment"] for each in candidates if "segment" in each.features}, reverse=True)
    least_segment = max(segments[:BAI_SEGMENTS][-1] if segments else 0.0, BAI_LEAST_PASSAGE)
    passages = [
        place for place, each in enumerate(candidates)
        if each.kind != "knowledge" and dense(each) >= BAI_LEAST_PASSAGE
        and each.features.get("segment", least_segment) >= least_segment
    ]  # fmt: skip
    facts = [
        place for place, each in enumerate(candidates) if each.kind == "knowledge" and dense(each) >= BAI_LEAST_FACT
    ]
    kept = {*_nearest(candidates, passages, BAI_PASSAGES), *_nearest(candidates, facts, BAI_FACTS)}
    return [{"dense": dense(each)} if place in kept else None for place, each in enumerate(candidates)]


def a_mem(candidates: Sequence[Candidate], _: int) -> list[Signals | None]:
    """Score by the mean of cosine and BM25, each min-max scaled."""
    meaning = scale([each.features.get("dense") for each in candidates])
    words = scale([each.features.get("bm25") for each in candidates])
    return [
        {"dense": A_MEM_ALPHA * cosine, "bm25": (1 - A_MEM_ALPHA) * bm25}
        for cosine, bm25 in zip(meaning, words, strict=True)
    ]


def cosine_only(candidates: Sequence[Candidate], _: int) -> list[Signals | None]:
    """Score by cosine: what is forgotten is gone, and what is there is ranked by meaning alone."""
    return [{"dense": dense(each)} for each in candidates]


def mem0_v2(candidates: Sequence[Candidate], query_terms: int) -> list[Signals | None]:
    """Score by cosine, BM25 through a sigmoid and entities, over what they can sum to; a cosine of 0.1 is required."""
    known = frozenset(name for each in candidates for name in each.features)
    most = 1.0 + ("bm25" in known) + MEM0_ENTITY_WEIGHT * ("entity" in known)
    return [_mem0(each, query_terms, most) for each in candidates]


def words_only(candidates: Sequence[Candidate], _: int) -> list[Signals | None]:
    """Score by BM25 alone, to measure the lexical arm by itself."""
    return [{"bm25": each.features.get("bm25", 0.0)} for each in candidates]


def dense(candidate: Candidate) -> float:
    """Return the cosine, clamped at 0; 0 without a vector."""
    return max(0.0, candidate.features.get("dense", 0.0))


def squash_bm25(score: float, query_terms: int) -> float:
    """Return BM25 as a value in (0, 1): a sigmoid that asks more of longer questions. No words give 0."""
    if score <= 0:
        return 0.0
    middle, steepness = next(
        ((middle, steepness) for most, middle, steepness in MEM0_SIGMOIDS if query_terms <= most), MEM0_LONG
    )
    return 1.0 / (1.0 + math.exp(-steepness * (score - middle)))


PARITY: Mapping[str, Scoring] = MappingProxyType(
    {
        "seed000": seed000, "bai_lab": bai_lab, "a_mem": a_mem, "memorybank": cosine_only, "mem0_v1": cosine_only,
        "mem0_v2": mem0_v2, "lexical": words_only,
    }
)  # fmt: skip
OURS: Mapping[str, Profile] = MappingProxyType({each.name: each for each in (DEFAULT, ENTITIES)})
"""The profiles that are weights of the explained sum."""
NAMES = (*OURS, *PARITY)
"""Every profile a question can be ranked by."""
WITH_ENTITIES = frozenset({ENTITIES.name, "mem0_v2"})
"""The profiles that look for the entities a question names."""

SAME_AS: Mapping[str, str] = MappingProxyType({"mem0": "mem0_v1"})
"""What a policy calls a profile after its design: the preset resolves conflicts as the first version does."""


def _seed_page(page: Candidate) -> Signals:
    heat = page.features.get("vitality", 1.0)
    return {"dense": SEED_GAMMA * dense(page), "vitality": (1 - SEED_GAMMA) * heat}


def _seed_knowledge(item: Candidate) -> Signals:
    return {"dense": dense(item) * item.features.get("vitality", 1.0)}


def _nearest(candidates: Sequence[Candidate], places: Sequence[int], count: int) -> list[int]:
    return sorted(places, key=lambda place: -dense(candidates[place]))[:count]


def _mem0(candidate: Candidate, query_terms: int, most: float) -> Signals | None:
    if dense(candidate) < MEM0_LEAST_DENSE:
        return None
    entity = candidate.features.get("entity", 0.0)
    boost = entity * MEM0_ENTITY_WEIGHT * entity_spread(candidate.features.get("entity_owners", 1.0))
    return {
        "dense": dense(candidate) / most,
        "bm25": squash_bm25(candidate.features.get("bm25", 0.0), query_terms) / most,
        "entity": (boost if entity >= MEM0_LEAST_ENTITY else 0.0) / most,
    }
