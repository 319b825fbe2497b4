"""True BM25 over what was read: document frequencies of the scope, per owner kind, fresh turns counted in. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from memoryos_pipeline.store.search import FoundPosting, TermStatistics

K1 = 1.2
B = 0.3
"""Weak length normalisation: turns are short, and 0.3 measured better than the usual 0.75."""

Owner = tuple[str, UUID]


class TermIndex:
    """Term frequencies of the owners that have a term of the question, and the statistics to weigh them with."""

    def __init__(self, statistics: TermStatistics, terms: Sequence[str]) -> None:
        self._terms = frozenset(terms)
        self._owners = dict(statistics.owners)
        self._total = dict(statistics.terms)
        self._frequency = dict(statistics.frequency)
        self._counts: dict[Owner, Counter[str]] = {}
        self._lengths: dict[Owner, int] = {}
        self._idf: dict[tuple[str, str], float] = {}

    def add_postings(self, postings: Iterable[FoundPosting]) -> None:
        """Take in what the index holds; its owners are in the statistics already."""
        for posting in postings:
            owner = (posting.owner_kind, posting.owner_id)
            self._counts.setdefault(owner, Counter())[posting.term] = posting.tf
            self._lengths[owner] = posting.length

    def add_length(self, owner: Owner, length: int) -> None:
        """Take in the length of an indexed owner that may have none of the terms."""
        self._lengths.setdefault(owner, length)

    def add_fresh(self, owner: Owner, terms: Sequence[str]) -> None:
        """Take in an owner that is not indexed yet, so that it scores as it will once it is."""
        kind = owner[0]
        self._idf.clear()
        counts = Counter(term for term in terms if term in self._terms)
        self._counts[owner], self._lengths[owner] = counts, len(terms)
        self._owners[kind] = self._owners.get(kind, 0) + 1
        self._total[kind] = self._total.get(kind, 0) + len(terms)
        for term in counts:
            self._frequency[kind, term] = self._frequency.get((kind, term), 0) + 1

    def owners(self) -> Iterable[Owner]:
        """Return every owner that has at least one of the terms."""
        return self._counts.keys()

    def length(self, owner: Owner) -> int:
        """Return the length of an owner in terms, 0 when it is unknown."""
        return self._lengths.get(owner, 0)

    def score(self, owners: Sequence[Owner]) -> float:
        """Return BM25 of these owners of one kind read as one document (a turn alone, or with its neighbours)."""
        found = [counts for owner in owners if (counts := self._counts.get(owner))]
        if not found:
            return 0.0
        counts = found[0] if len(found) == 1 else sum(found, Counter())
        kind = owners[0][0]
        average = len(owners) * self._total.get(kind, 0) / max(self._owners.get(kind, 0), 1)
        length = sum(self._lengths.get(owner, 0) for owner in owners)
        norm = K1 * (1 - B + B * length / max(average, 1.0))
        return sum(self.idf(kind, term) * tf * (K1 + 1) / (tf + norm) for term, tf in counts.items())

    def idf(self, kind: str, term: str) -> float:
        """Return the inverse document frequency of a term among owners of a kind; never negative."""
        known = self._idf.get((kind, term))
        if known is None:
            owners, frequency = self._owners.get(kind, 0), self._frequency.get((kind, term), 0)
            known = math.log(1 + (max(owners - frequency, 0) + 0.5) / (frequency + 0.5))
            self._idf[kind, term] = known
        return known

    def best(self, limit: int) -> list[Owner]:
        """Return the owners with the highest score by themselves; ties by id."""
        scored = sorted(
            ((-self.score([owner]), owner) for owner in self._counts),
            key=lambda pair: (pair[0], str(pair[1])),
        )
        return [owner for _, owner in scored[:limit]]


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
