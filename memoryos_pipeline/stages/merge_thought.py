"""A candidate on its way into knowledge: its vector, what lies near it, and how near that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from memoryos_pipeline.domain.knowledge import Candidate, Neighbour
from memoryos_pipeline.domain.links import bare_words
from memoryos_pipeline.domain.segments import jaccard, match_score
from memoryos_pipeline.domain.truths import Claim
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Embedded, Vector
from memoryos_pipeline.store.candidates import Found
from memoryos_pipeline.store.knowledge import PageInLine


@dataclass(frozen=True, slots=True)
class Step:
    """One page to merge as it was read, and the version of the scope it was read at."""

    page: PageInLine
    lock_version: int
    found: Found


@dataclass(frozen=True, slots=True)
class Thought:
    """A candidate under the id it would be stored under, its vector and whatever lies near it, nearest first."""

    ordinal: int
    knowledge_id: UUID
    candidate: Candidate
    embedded: Embedded
    common: Vector
    """What any two statements of its language share in this vector space."""
    near: tuple[Neighbour, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    """What a verdict is asked about: the same slot, and what is near enough."""

    def claim(self) -> Claim:
        """Return what the conflict rules need of it."""
        offered = frozenset(neighbour.knowledge_id for neighbour in self.neighbours)
        return Claim(self.ordinal, self.knowledge_id, self.candidate, offered)

    def nearness(self, other: Neighbour, vector: Sequence[float] | Vector | None) -> float:
        """Return how near a statement is: cosine without the common part, plus Jaccard of terms; 0 to 2."""
        if vector is None:
            return 0.0
        cosine = _cosine(self.embedded.vector - self.common, np.asarray(vector, np.float32) - self.common)
        terms = terms_of(self.candidate.content, self.candidate)
        return match_score(cosine, jaccard(terms, terms_of(other.content, self.candidate)))


def _cosine(one: Vector, other: Vector) -> float:
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.dot(one, other)) / norms if norms else 0.0


def terms_of(content: str, candidate: Candidate) -> list[str]:
    """Return the terms of a statement by the language of a candidate, without date and speaker."""
    return lexical_terms(bare_words(content, candidate.actor), candidate.lang)
