"""Context: what a question recalls, packed into a token budget as text a prompt can take, with its items."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.packing import CAPS, CAPS_UNNAMED, Item, Packed, pack
from memoryos_pipeline.recall.columns import uuids_of
from memoryos_pipeline.recall.days import MOST_SHOWN, SECTION, day_items
from memoryos_pipeline.recall.filters import Gate
from memoryos_pipeline.recall.hot_tail import HotTail
from memoryos_pipeline.recall.parts import RecallParts
from memoryos_pipeline.recall.results import Result, as_result
from memoryos_pipeline.recall.search import Ask, Retrieval, search
from memoryos_pipeline.store.found import FoundPin, FoundTrait, read_pins, read_traits
from memoryos_pipeline.store.rollups import Rollup, read_newest

TOKENS_PER_LINE = 10
"""No line is shorter than this, so a budget never takes more results than budget / this."""
MAX_RESULTS = 200
REF_CHARACTERS = 8
"""How much of an id is printed beside a line: enough to find it again within one memory."""
Shown = TypeVar("Shown", Result, FoundPin)
SECTION_OF_KIND = {"turn": "turns", "knowledge": "knowledge", "page": "pages"}


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One printed line: where it stands, how it can be named, and the result it shows (None for profile and days).

    `page_ids` are the pages that the summary of a day is made of.
    """

    section: str
    ref: str
    line: str
    result: Result | None
    page_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """A prompt-ready text within its budget, and what it is made of in printed order."""

    retrieval: Retrieval
    text: str
    tokens: int
    items: tuple[ContextItem, ...]

    @property
    def sections(self) -> dict[str, int]:
        """How many lines each section has."""
        counts: dict[str, int] = {}
        for item in self.items:
            counts[item.section] = counts.get(item.section, 0) + 1
        return counts


def build_context(
    parts: RecallParts, tenant_id: UUID, ask: Ask, *, token_budget: int, conversation_id: str | None = None
) -> Context:
    """Search, add the recent turns (of `conversation_id`, or of the last conversation), pins and profile, and pack.

    Where the policy keeps rollups, the days so far are shown. Filters hold for all of it: then there is neither
    profile nor day, which nobody said at any time.
    """
    wide = replace(ask, limit=min(MAX_RESULTS, max(1, token_budget // TOKENS_PER_LINE)))
    retrieval = search(parts, tenant_id, wide)
    tail = HotTail(parts.hot_copies, retrieval.key, conversation_id).look()
    with parts.database.snapshot(tenant_id) as connection:
        traits = read_traits(connection, retrieval.key) if retrieval.gate is None else []
        pins = _passing(retrieval.gate, read_pins(connection, retrieval.key))
        recent = _passing(retrieval.gate, [as_result(turn) for turn in tail.read(connection)])
        days = _days(connection, retrieval)
    tail.put_back()
    results = {result.owner_id.hex: result for result in retrieval.results}
    shown = {result.owner_id.hex: result for result in recent} | results
    items = [
        *(_item(result, section="recent") for result in recent),
        *map(_pinned, pins),
        *map(_trait, traits),
        *day_items(days, budget_tokens=token_budget),
        *(_item(result, section=SECTION_OF_KIND[result.kind]) for result in retrieval.results),
    ]
    packed = pack(items, budget_tokens=token_budget, caps=CAPS if conversation_id else CAPS_UNNAMED)
    return _context(retrieval, packed, shown, {each.period: each.page_ids for each in days})


def _days(connection: Connection, retrieval: Retrieval) -> list[Rollup]:
    if retrieval.gate is not None or retrieval.policy.rollups == "none":
        return []
    return read_newest(connection, retrieval.key.tenant_id, retrieval.key.scope_id, limit=MOST_SHOWN)


def _passing(gate: Gate | None, shown: Sequence[Shown]) -> Sequence[Shown]:
    if gate is None:
        return shown
    passing = set(uuids_of(gate.owners))
    return [each for each in shown if each.owner_id in passing]


def _context(
    retrieval: Retrieval, packed: Packed, shown: dict[str, Result], pages: dict[str, tuple[UUID, ...]]
) -> Context:
    lines = tuple(
        ContextItem(item.section, _ref(item), item.line, shown.get(item.key), pages.get(item.key, ()))
        for item in packed.items
    )
    return Context(retrieval, packed.text, packed.tokens, lines)


def _ref(item: Item) -> str:
    return item.key if item.section == SECTION else item.key[:REF_CHARACTERS]


def _item(result: Result, *, section: str) -> Item:
    return Item(
        key=result.owner_id.hex,
        section=section,
        line=_line(result),
        score=result.score,
        at=result.at,
        lineage_id=result.lineage_id if result.status == "active" else None,
        version=result.version,
        is_valid=result.status in {None, "active"},
    )


def _line(result: Result) -> str:
    date = f"{result.at:%Y-%m-%d}"
    about = f" about {result.event_at:%Y-%m-%d}" if result.event_at else ""
    about = about if about.strip() != f"about {date}" else ""
    retired = "" if result.status in {None, "active"} else f" {result.status}"
    speaker = f"{result.speaker}: " if result.kind == "turn" else ""
    return _one_line(f"[{date}{about}{retired} {result.owner_id.hex[:REF_CHARACTERS]}] {speaker}{result.content}")


def _pinned(pin: FoundPin) -> Item:
    key = pin.owner_id.hex
    line = _one_line(f"[{pin.at:%Y-%m-%d} {key[:REF_CHARACTERS]}] {pin.content}")
    return Item(key, "pinned", line, pin.weight, pin.at)


def _trait(trait: FoundTrait) -> Item:
    line = _one_line(f"{trait.actor} {trait.dimension}: {trait.level} ({trait.updated_at:%Y-%m-%d})")
    return Item(f"{trait.actor}|{trait.dimension}", "profile", line, trait.confidence, trait.updated_at)


def _one_line(text: str) -> str:
    # A line break in a turn must not be able to look like another line or heading of the context.
    return " ".join(text.split())


def injected(items: Iterable[ContextItem]) -> Sequence[tuple[str, UUID]]:
    """Return (owner kind, owner id) of everything printed that is a turn, a page or knowledge."""
    return [(item.result.kind, item.result.owner_id) for item in items if item.result]
