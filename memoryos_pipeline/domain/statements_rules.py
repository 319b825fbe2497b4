"""The shapes rules about statements are written in: patterns that set an attribute, and frames of a cue and items."""

import re
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """A phrase that sets an attribute to what its group `v` matches.

    With `value` the attribute is that of the thing in `v` ("likes" of olives), or, without a group `v`, the whole
    statement says so ("single").
    """

    attribute: str
    pattern: re.Pattern[str]
    importance: float
    value: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """An attribute of one value at a time whose values are a closed class: the cue says what is talked about.

    Of the items named, one that is left behind ("instead of tea", "sold the Volvo") is not the value.
    """

    attribute: str
    importance: float
    cue: re.Pattern[str]
    item: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Everything the rules know of one language.

    `left_before` matches what ends right before a value that is left behind, `left_after` what begins right after it;
    `clause` splits a sentence where a word of leaving no longer reaches; `generic` are endings a thing has or has not
    ("lessons"), `other` finds other people as subjects, `own` who speaks.
    """

    rules: tuple[Rule, ...]
    frames: tuple[Frame, ...]
    left_before: re.Pattern[str]
    left_after: re.Pattern[str]
    clause: re.Pattern[str]
    generic: re.Pattern[str]
    other: re.Pattern[str]
    own: re.Pattern[str]


def rules(*rows: tuple[Any, ...]) -> tuple[Rule, ...]:
    """Return rules from rows of attribute, importance, pattern and, when they differ, value and negated."""
    return tuple(Rule(str(row[0]), re.compile(str(row[2])), float(row[1]), *row[3:]) for row in rows)


def frame(attribute: str, importance: float, cue: str, item: str) -> Frame:
    """Return a frame; letters of either case match."""
    return Frame(attribute, importance, re.compile(cue, re.IGNORECASE), re.compile(item, re.IGNORECASE))


def spoken(grammar: Grammar, first: tuple[Rule, ...], last: tuple[Rule, ...]) -> Grammar:
    """Return a grammar with the looser rules of spoken language around its own."""
    return replace(grammar, rules=(*first, *grammar.rules, *last))
