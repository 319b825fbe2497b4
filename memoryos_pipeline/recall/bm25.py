"""True BM25 over what was read: document frequencies of the scope, per owner kind, fresh turns counted in. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from memoryos_pipeline.recall.columns import NO_IDS, Floats, Ids, Places, find
from memoryos_pipeline.store.search import TermStatistics

K1 = 1.2
B = 0.3
"""Weak length normalisation: turns are short, and 0.3 measured better than the usual 0.75."""


class TermIndex:
    """What is known of the terms of a question: statistics to weigh them with, and the owners that have them."""

    def __init__(self, statistics: TermStatistics, terms: Sequence[str], kinds: Sequence[str]) -> None:
        self._terms = {term: place for place, term in enumerate(terms)}
        self._owners = np.array([statistics.owners.get(kind, 0) for kind in kinds], dtype=np.float64)
        self._total = np.array([statistics.terms.get(kind, 0) for kind in kinds], dtype=np.float64)
        frequency = [[statistics.frequency.get((kind, term), 0) for term in terms] for kind in kinds]
        self._frequency = np.array(frequency, dtype=np.float64).reshape(len(kinds), len(terms))
        self._kinds = {kind: place for place, kind in enumerate(kinds)}
        self.owners: Ids = NO_IDS
        self.kinds: Places = np.empty(0, dtype=np.intp)
        self.lengths: Floats = np.empty(0)
        self.counts: Floats = np.empty((0, len(terms)))

    def place(self, term: str) -> int:
        """Return the column of a term."""
        return self._terms[term]

    def count(self, kind: int) -> int:
        """Return how many owners of a kind are known, those that are not indexed yet when they were counted in."""
        return int(self._owners[kind])

    def add(self, owners: Ids, kinds: Places, terms: Places, tf: Floats, lengths: Floats) -> None:
        """Take in postings (one an element) of what the index holds; its owners are in the statistics already."""
        everyone, first, row = np.unique(np.concatenate([self.owners, owners]), return_index=True, return_inverse=True)
        counts = np.zeros((len(everyone), len(self._terms)))
        held = len(self.owners)
        counts[row[:held]] = self.counts
        counts[row[held:], terms] = tf
        self.owners, self.counts = everyone, counts
        self.kinds = np.concatenate([self.kinds, kinds])[first]
        self.lengths = np.concatenate([self.lengths, lengths])[first]

    def add_fresh(self, kind: str, texts: Sequence[Sequence[str]]) -> Floats:
        """Count in owners that are not indexed yet, so that they score as they will; return (owner, term) counts."""
        number = self._kinds[kind]
        counts = np.zeros((len(texts), len(self._terms)))
        for row, terms in enumerate(texts):
            for term, tf in Counter(term for term in terms if term in self._terms).items():
                counts[row, self._terms[term]] = tf
        self._owners[number] += len(texts)
        self._total[number] += sum(map(len, texts))
        self._frequency[number] += (counts > 0).sum(axis=0)
        return counts

    def counts_of(self, owners: Ids) -> tuple[Floats, Floats]:
        """Return the (owner, term) counts of any owners, and their lengths in terms, 0 where nothing was read."""
        at = find(self.owners, owners)
        counts, lengths = np.zeros((len(owners), len(self._terms))), np.zeros(len(owners))
        counts[at >= 0], lengths[at >= 0] = self.counts[at[at >= 0]], self.lengths[at[at >= 0]]
        return counts, lengths

    def score(self, counts: Floats, lengths: Floats, kinds: Places, width: Floats | float = 1.0) -> Floats:
        """Return BM25 of documents; `width` is how many owners each was put together from (a turn and neighbours)."""
        average = width * (self._total / np.maximum(self._owners, 1))[kinds]
        norm = K1 * (1 - B + B * lengths / np.maximum(average, 1.0))
        found: Floats = (self.idf()[kinds] * counts * (K1 + 1) / (counts + norm[:, None])).sum(axis=1)
        return found

    def idf(self) -> Floats:
        """Return the inverse document frequency by kind and term; never negative."""
        rest = np.maximum(self._owners[:, None] - self._frequency, 0) + 0.5
        weighed: Floats = np.log1p(rest / (self._frequency + 0.5))
        return weighed

    def best(self, limit: int) -> Places:
        """Return where the owners with the highest score by themselves are; ties by id."""
        scores = self.score(self.counts, self.lengths, self.kinds)
        return np.lexsort((self.owners, self.kinds, -scores))[:limit]


def split_terms(
    statistics: TermStatistics, terms: Sequence[str], *, kinds: Sequence[str], budget: int
) -> tuple[list[str], list[str]]:
    """Split terms into those that drive candidates and those too common to: the rarest first, within `budget` postings.

    The rarest term that occurs at all always drives. Terms that occur nowhere are left out.
    """
    frequency: Mapping[str, int] = {
        term: sum(statistics.frequency.get((kind, term), 0) for kind in kinds) for term in terms
    }
    driving: list[str] = []
    common: list[str] = []
    used = 0
    for term in sorted((term for term in terms if frequency[term]), key=lambda term: (frequency[term], term)):
        used += frequency[term]
        (common if driving and used > budget else driving).append(term)
    return driving, common
