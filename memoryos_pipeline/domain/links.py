"""Which knowledge is linked to which, how strongly, and why. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

SIMILAR = "similar"
CORRECTS = "corrects"
REASON_TERMS = 5


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a link. `weight` is in 0..1."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float
    reason: str


def shared_terms(terms: Sequence[str], other_terms: Iterable[str]) -> list[str]:
    """Return the terms both texts have, in the order of the first, each once, longer ones before shorter ones."""
    others = set(other_terms)
    return sorted({term: None for term in terms if term in others}, key=len, reverse=True)


def similarity_reason(terms: Sequence[str], other_terms: Iterable[str]) -> str:
    """Return why two texts are linked: the terms they share, or that only their vectors are near."""
    shared = shared_terms(terms, other_terms)[:REASON_TERMS]
    return f"shared terms: {', '.join(shared)}" if shared else "near in meaning, no shared term"


def strongest(links: Iterable[Link], *, cap: int) -> list[Link]:
    """Keep at most `cap` links, the weakest dropped; ties are kept by id, so that a repeat keeps the same."""
    return sorted(links, key=lambda link: (-link.weight, link.target_id))[:cap]


def both_ways(link: Link) -> tuple[Link, Link]:
    """Return a link and its mirror, for relations that have no direction."""
    return link, Link(link.target_id, link.source_id, link.type, link.weight, link.reason)
