"""Whether the person a question names said anything of the kind, or only somebody else did. Pure.

Similarity cannot tell: who asks about the wrong person asks in the words of the right one. What tells is whose turns
have the words: the doubt is how much better somebody else's best turn fits the question than the named person's. Turns
that end by asking do not count. "How was your marathon?" has all the words, and is said by whoever did not run it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

QUESTION_MARKS = "?？"
CLOSERS = " \t\n\"'”’»」』）)"


@dataclass(frozen=True, slots=True)
class Heard:
    """One turn: whether the named person said it, its BM25 against the question (0 or more), whether it ends asking."""

    is_named: bool
    words: float
    asks: bool = False


@dataclass(frozen=True, slots=True)
class NotSaid:
    """How much the memory doubts that the named person said what is asked for, in [-1, 1].

    Above 0 somebody else's words fit the question better than anything `actor` said: 1 when only others said anything
    with its words, -1 when only `actor` did, 0 when nobody did or both fit alike.
    """

    actor: str
    doubt: float


def doubt_said(heard: Iterable[Heard]) -> float:
    """Return the margin of the best turn of others over the best of the named person, over the better of the two."""
    named = others = 0.0
    for each in heard:
        if each.asks:
            continue
        if each.is_named:
            named = max(named, each.words)
        else:
            others = max(others, each.words)
    best = max(named, others)
    return (others - named) / best if best else 0.0


def ends_asking(text: str) -> bool:
    """Tell whether a text ends in a question."""
    return text.rstrip(CLOSERS).endswith(tuple(QUESTION_MARKS))
