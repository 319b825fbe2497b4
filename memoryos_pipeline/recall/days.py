"""The days so far, as lines of a context: the whole and the newest days, each cut to its share of the section."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta

from memoryos_pipeline.domain.packing import CAPS, NEWLINE_TOKENS, TITLES, Item, clip, estimate_tokens
from memoryos_pipeline.domain.rollups import WHOLE
from memoryos_pipeline.store.rollups import Rollup

SECTION = "rollups"
MOST_SHOWN = 8
"""The whole and a week of days."""
TOKENS_PER_LINE = 30
"""With less room than this for each, fewer are shown."""
REFS_SHOWN = 2
REF_CHARACTERS = 8


def day_items(found: Sequence[Rollup], *, budget_tokens: int) -> list[Item]:
    """Return the lines of the section, as many and as long as its share of the budget takes."""
    room = int(budget_tokens * CAPS[SECTION]) - estimate_tokens(TITLES[SECTION]) - NEWLINE_TOKENS
    shown = found[: max(1, room // TOKENS_PER_LINE)]
    lines = [clip(_line(each), room // len(shown) - NEWLINE_TOKENS) for each in shown]
    return [_item(each, line, place) for place, (each, line) in enumerate(zip(shown, lines, strict=True)) if line]


def _item(rollup: Rollup, line: str, place: int) -> Item:
    at = datetime.combine(rollup.first_day, time(), UTC)
    # The whole is printed before the day it begins with.
    at -= timedelta(seconds=1) if rollup.period == WHOLE else timedelta()
    return Item(rollup.period, SECTION, line, 1.0 / (1 + place), at)


def _line(rollup: Rollup) -> str:
    days = f"{rollup.first_day}" if rollup.first_day == rollup.last_day else f"{rollup.first_day} to {rollup.last_day}"
    refs = [page_id.hex[:REF_CHARACTERS] for page_id in rollup.page_ids[:REFS_SHOWN]]
    more = [f"+{len(rollup.page_ids) - REFS_SHOWN}"] if len(rollup.page_ids) > REFS_SHOWN else []
    return f"[{' '.join([days, *refs, *more])}] {' '.join(rollup.summary.split())}"
