"""The life of a page: its states, and the events that move it, written down once."""

from dataclasses import dataclass
from enum import StrEnum


class PageState(StrEnum):
    """Where a page stands. `docs/lifecycle.md` draws the same table."""

    SEALED = "sealed"
    """Its turns are fixed; they are searchable as soon as they are embedded."""
    SUMMARIZED = "summarized"
    """It has a summary and waits for its segment."""
    WARM = "warm"
    """It is in a segment and cools until somebody reads it."""
    DISTILLING = "distilling"
    """It has its place in the order of distillation."""
    DISTILLED = "distilled"
    """What it says is knowledge now, or an explicit nothing."""
    ARCHIVED = "archived"
    """It left warm search; its turns stay, and its knowledge."""


TRANSITIONS: dict[str, dict[PageState, PageState]] = {
    "page_summarized": {PageState.SEALED: PageState.SUMMARIZED},
    "page_assigned": {PageState.SUMMARIZED: PageState.WARM},
    "page_handed": {PageState.WARM: PageState.DISTILLING},
    "page_distilled": {PageState.DISTILLING: PageState.DISTILLED},
    "page_archived": {PageState.DISTILLED: PageState.ARCHIVED},
}
"""Event -> state before -> state after. A page begins with `page_sealed`."""

REMARKS = ("page_heated", "page_cooled", "page_evicted", "page_pinned", "page_unpinned")
"""Events that say something about a page without moving it; `page_heated` and `page_cooled` say why one is handed."""


class IllegalTransitionError(ValueError):
    """An event came to a page in a state it cannot happen in."""


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The columns the state of a page follows from."""

    tier: str
    summarized: bool
    assigned: bool
    handed: bool
    extracted: bool


def page_state(facts: PageFacts) -> PageState:
    """Return the state of a page; the furthest one its columns speak of."""
    if facts.tier == "archived":
        return PageState.ARCHIVED
    if facts.extracted:
        return PageState.DISTILLED
    if facts.handed:
        return PageState.DISTILLING
    if facts.assigned:
        return PageState.WARM
    return PageState.SUMMARIZED if facts.summarized else PageState.SEALED


def move(state: PageState, event: str) -> PageState:
    """Return the state after an event. Raises IllegalTransitionError."""
    if event in REMARKS:
        return state
    after = TRANSITIONS.get(event, {}).get(state)
    if after is None:
        message = f"{event} cannot happen to a page that is {state}"
        raise IllegalTransitionError(message)
    return after


def draw() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {PageState.SEALED}: page_sealed"]
    for event, moves in TRANSITIONS.items():
        lines += [f"    {before} --> {after}: {event}" for before, after in moves.items()]
    return "\n".join([*lines, f"    {PageState.ARCHIVED} --> [*]: erased with its scope"])
