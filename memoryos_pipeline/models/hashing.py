"""An embedder without weights: signed feature hashing of search terms and character trigrams."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from memoryos_pipeline.models.lexical import MAX_DISTINCT_TERMS, lexical_terms, normalize_text
from memoryos_pipeline.models.protocols import Embedded, Vector

DIMENSIONS = 384
TRIGRAM_WEIGHT = 0.3
MAX_TRIGRAM_CHARACTERS = 4_000


class HashingEmbedder:
    """Vectors that are near when texts share words or spelling; for tests and for hosts without the model."""

    model = "hashing"
    revision = "1"
    dimensions = DIMENSIONS
    token_cap = MAX_DISTINCT_TERMS

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        """Embed stored text, one result a text, in order."""
        return [self._embed(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """Embed a question."""
        return self._embed(text).vector

    def _embed(self, text: str) -> Embedded:
        terms = lexical_terms(text, "und")
        kept = terms[: self.token_cap]
        vector = np.zeros(DIMENSIONS, dtype=np.float32)
        _add(vector, Counter(f"t:{term}" for term in kept), 1.0)
        _add(vector, Counter(_trigrams(text)), TRIGRAM_WEIGHT)
        return Embedded(_unit(vector), tokens=len(kept), truncated=len(kept) < len(terms))


def _add(vector: Vector, features: Counter[str], weight: float) -> None:
    for feature, count in features.items():
        index, sign = _place(feature)
        vector[index] += sign * weight * count**0.5


@lru_cache(maxsize=100_000)
def _place(feature: str) -> tuple[int, float]:
    digest = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest())
    return digest % DIMENSIONS, 1.0 if digest >> 63 else -1.0


def _trigrams(text: str) -> Iterator[str]:
    padded = f" {' '.join(normalize_text(text[:MAX_TRIGRAM_CHARACTERS]).split())} "
    return (padded[start : start + 3] for start in range(len(padded) - 2))


def _unit(vector: Vector) -> Vector:
    norm = float(np.linalg.norm(vector))
    if norm == 0.0:  # nothing to say still has a place
        vector[0] = norm = 1.0
    return (vector / norm).astype(np.float32)
