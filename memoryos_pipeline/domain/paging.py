"""Where pages begin and end: a pure function of the turn sequence, so any batching gives the same pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from memoryos_pipeline.domain.policies import Policy


@dataclass(frozen=True, slots=True)
class TurnMark:
    """What paging needs to know of a turn: where it stands, when it was said, in which language."""

    seq: int
    occurred_at: datetime
    lang: str = "und"


@dataclass(frozen=True, slots=True)
class PageSpan:
    """A page to be sealed. The times are the earliest and the latest of its turns."""

    first_seq: int
    last_seq: int
    turn_count: int
    first_turn_at: datetime
    last_turn_at: datetime
    lang: str


def plan_pages(turns: Sequence[TurnMark], policy: Policy, *, flush: bool = False) -> list[PageSpan]:
    """Return the pages that leave the hot buffer now; `turns` are all that are not sealed yet, in order.

    Pages before the last silence leave, then the oldest while more than the hot capacity stay. `flush` seals
    every turn that is left.
    """
    runs = list(_split_at_silences(turns, policy))
    last_run = runs[-1] if runs else ()
    pages = [page for run in runs[:-1] for page in _cut(run, policy.page_size_turns)]
    for page in _cut(last_run, policy.page_size_turns):
        if not flush and len(last_run) <= policy.hot_capacity_turns:
            break
        pages.append(page)
        last_run = last_run[len(page) :]
    return [_span(page) for page in pages]


def is_idle(now: datetime, *, last_activity_at: datetime, closed_at: datetime | None, policy: Policy) -> bool:
    """Tell whether a conversation's hot buffer is to be sealed to the last turn."""
    return closed_at is not None or now - last_activity_at >= timedelta(minutes=policy.idle_flush_minutes)


def is_silence(before: datetime, after: datetime, policy: Policy) -> bool:
    """Tell whether two neighbouring turns belong to different sittings.

    A jump back in time is a break too: a late import is another sitting.
    """
    return abs(after - before) >= timedelta(hours=policy.page_break_hours)


def leaves_hot(*, unsealed: int, before: datetime | None, moments: Sequence[datetime], policy: Policy) -> bool:
    """Tell whether recording turns of these moments makes a page leave: too many stay, or a silence lies among them.

    `unsealed` counts the hot turns with the new ones; `before` is the moment of the turn ahead of them, if it is hot.
    """
    line = [before, *moments] if before else moments
    return unsealed > policy.hot_capacity_turns or any(is_silence(a, b, policy) for a, b in pairwise(line))


def _split_at_silences(turns: Sequence[TurnMark], policy: Policy) -> Iterator[Sequence[TurnMark]]:
    start = 0
    for index in range(1, len(turns)):
        if is_silence(turns[index - 1].occurred_at, turns[index].occurred_at, policy):
            yield turns[start:index]
            start = index
    if turns:
        yield turns[start:]


def _cut(run: Sequence[TurnMark], size: int) -> list[Sequence[TurnMark]]:
    return [run[start : start + size] for start in range(0, len(run), size)]


def _span(page: Sequence[TurnMark]) -> PageSpan:
    moments = [turn.occurred_at for turn in page]
    return PageSpan(
        first_seq=page[0].seq,
        last_seq=page[-1].seq,
        turn_count=len(page),
        first_turn_at=min(moments),
        last_turn_at=max(moments),
        lang=_main_language(page),
    )


def _main_language(page: Sequence[TurnMark]) -> str:
    """Return the commonest known language of a page; of equals the one that comes first."""
    known = Counter(turn.lang for turn in page if turn.lang != "und")
    return known.most_common(1)[0][0] if known else "und"
