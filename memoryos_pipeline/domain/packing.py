"""How results become a context: sections, a token budget that is never exceeded, newest valid first. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

SECTIONS = ("pinned", "profile", "rollups", "knowledge", "pages", "turns", "recent")
"""The order in which sections are printed; what was said last stands next to the question."""
BLIND_SECTIONS = ("recent", "pinned", "profile", "rollups")
"""Sections that are there whatever is asked, in the order they are filled in."""
TITLES: Mapping[str, str] = {
    "recent": "## Recent turns",
    "pinned": "## Often used",
    "profile": "## Profile",
    "rollups": "## Days so far",
    "knowledge": "## What is known",
    "pages": "## Summaries of earlier pages",
    "turns": "## What was said",
}
CAPS: Mapping[str, float] = {"recent": 0.25, "pinned": 0.1, "profile": 0.05, "rollups": 0.09, "pages": 0.3}
"""The share of the budget a section may take at most, so that an answer from the past keeps more than half of it."""
CAPS_UNNAMED: Mapping[str, float] = {**CAPS, "recent": 0.1}
"""When nobody says which conversation is going on, recent turns are a guess: room is better spent on answers."""
LATIN_CHARACTERS_PER_TOKEN = 4
NEWLINE_TOKENS = 1
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Item:
    """One line that may be printed. `at` orders lines within a section, `lineage_id` groups versions of one truth."""

    key: str
    section: str
    line: str
    score: float
    at: datetime
    lineage_id: UUID | None = None
    version: int = 1
    is_valid: bool = True


@dataclass(frozen=True, slots=True)
class Packed:
    """A prompt-ready text, its estimated tokens and the items in it, in printed order."""

    text: str
    tokens: int
    items: tuple[Item, ...]


def estimate_tokens(text: str) -> int:
    """Estimate tokens: one a wide character (Han, kana, Hangul, emoji), one per four other characters, rounded up."""
    wide = 0 if text.isascii() else sum(map(is_wide, text))
    narrow = len(text) - wide
    return wide + -(-narrow // LATIN_CHARACTERS_PER_TOKEN)


def is_wide(character: str) -> bool:
    """Tell whether a character is about a token by itself."""
    code = ord(character)
    return 0x1100 <= code <= 0x11FF or 0x2E80 <= code <= 0xD7FF or 0xF900 <= code <= 0xFAFF or code >= 0xFF00


def pack(items: Iterable[Item], *, budget_tokens: int, caps: Mapping[str, float] = CAPS) -> Packed:
    """Choose lines by score within the budget and each section's cap, and print them section by section.

    Recent turns are chosen newest first, everything else by score. A line that does not fit is left out whole; only
    when nothing at all fits is the best line cut. What the caps leave unused is offered to the capped sections again.
    """
    waiting = newest_valid(items)
    chosen: dict[str, Item] = {}
    for shares in (caps, {}):
        _fill(chosen, waiting, budget_tokens=budget_tokens, caps=shares)
    if not chosen and waiting:
        best = max(waiting, key=lambda item: (item.section not in BLIND_SECTIONS, item.score))
        return _print(_cut(best, budget_tokens))
    return _print(chosen.values())


def newest_valid(items: Iterable[Item]) -> list[Item]:
    """Keep one item a lineage (valid before invalid, then the newest version) and one a key and section."""
    kept: dict[object, Item] = {}
    for item in items:
        identity: object = item.lineage_id or (item.section, item.key)
        held = kept.get(identity)
        if held is None or (item.is_valid, item.version) > (held.is_valid, held.version):
            kept[identity] = item
    return list(kept.values())


def _fill(chosen: dict[str, Item], waiting: Sequence[Item], *, budget_tokens: int, caps: Mapping[str, float]) -> None:
    spent = dict.fromkeys(SECTIONS, 0)
    for item in chosen.values():
        spent[item.section] += _cost(item, spent[item.section])
    for item in sorted(waiting, key=_priority):
        cost = _cost(item, spent[item.section])
        cap = budget_tokens * caps.get(item.section, 1.0)
        fits = sum(spent.values()) + cost <= budget_tokens and spent[item.section] + cost <= cap
        if item.key not in chosen and fits:
            chosen[item.key] = item
            spent[item.section] += cost


def _priority(item: Item) -> tuple[int, float, str]:
    if item.section not in BLIND_SECTIONS:
        return (len(BLIND_SECTIONS), -item.score, item.key)
    newest_first = item.section == "recent"
    rank = BLIND_SECTIONS.index(item.section)
    return (rank, -item.at.timestamp() if newest_first else -item.score, item.key)


def _cost(item: Item, spent_in_section: int) -> int:
    title = 0 if spent_in_section else estimate_tokens(TITLES[item.section]) + NEWLINE_TOKENS
    return title + estimate_tokens(item.line) + NEWLINE_TOKENS


def _print(items: Iterable[Item]) -> Packed:
    chosen = list(items)
    lines: list[str] = []
    printed: list[Item] = []
    for section in SECTIONS:
        members = sorted((item for item in chosen if item.section == section), key=lambda item: (item.at, item.key))
        if members:
            lines += [TITLES[section], *(item.line for item in members)]
            printed += members
    text = "\n".join(lines)
    return Packed(text, estimate_tokens(text), tuple(printed))


def clip(text: str, tokens: int) -> str:
    """Return a text within so many tokens, its end replaced by an ellipsis if need be; empty when nothing fits."""
    if estimate_tokens(text) <= tokens:
        return text
    room, used, end = tokens - estimate_tokens(ELLIPSIS), 0.0, 0
    for character in text:
        used += 1.0 if is_wide(character) else 1.0 / LATIN_CHARACTERS_PER_TOKEN
        if used > room:
            break
        end += 1
    return text[:end].rstrip() + ELLIPSIS if end else ""


def _cut(item: Item, budget_tokens: int) -> list[Item]:
    clipped = clip(item.line, budget_tokens - _cost(replace(item, line=""), 0))
    return [replace(item, line=clipped)] if clipped else []
