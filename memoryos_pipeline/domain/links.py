"""Which knowledge is linked to which, how strongly, and why. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

SIMILAR = "similar"
CORRECTS = "corrects"
REASON_TERMS = 5
_CALENDAR = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this) (?:night|week|weekend|month|year)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b"
    r"|一昨日|昨日|昨夜|今日|明日|先週|今週|来週|先月|今月|来月|去年|昨年|今年|来年|[月火水木金土日]曜日?"
    r"|그저께|어제|오늘|내일|지난 ?주|이번 ?주|다음 ?주|지난달|이번 ?달|다음 ?달|작년|올해|내년|[월화수목금토일]요일"
    r"|前天|昨天|今天|明天|后天|上个?周|这个?周|下个?周|上个月|这个月|下个月|[周星][期]?[一二三四五六日天末]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a link. `weight` is in 0..1."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float
    reason: str


def is_dated(content: str) -> bool:
    """Tell whether a statement carries its date in front."""
    return content.startswith("[") and "] " in content


def bare_words(content: str, actor: str) -> str:
    """Return a statement without its date, its speaker and calendar words: none of them says what it is about."""
    return _CALENDAR.sub(" ", said_words(content, actor))


def said_words(content: str, actor: str) -> str:
    """Return a statement without its date and its speaker in front."""
    said = content.partition("] ")[2] if is_dated(content) else content
    return said.removeprefix(f"{' '.join(actor.split())}: ")


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
