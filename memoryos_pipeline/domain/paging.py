"""Where pages begin and end: a pure function of the turn sequence, so any batching gives the same pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from memoryos_pipeline.domain.policies import Policy


@dataclass(frozen=True, slots=True)
class TurnMark:
    """What paging needs to know of a turn: its place, when and by whom it was said, its language and length."""

    seq: int
    occurred_at: datetime
    lang: str = "und"
    role: str = "user"
    tokens: int = 0


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

    Pages before the last silence leave, then the oldest whole pages while hot holds more than it may. `flush` seals
    every turn that is left.
    """
    runs = list(_split_at_silences(turns, policy))
    last_run = runs[-1] if runs else ()
    pages = [page for run in runs[:-1] for page in _cut(run, policy)]
    for page in _cut(last_run, policy):
        if not flush and not (_is_over(last_run, policy) and _is_whole(page, last_run, policy)):
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
    Under `token_budget` only whoever seals counts tokens, so every recording asks.
    """
    line = [before, *moments] if before else moments
    is_over = policy.hot == "token_budget" or unsealed > policy.hot_capacity_turns
    return is_over or any(is_silence(a, b, policy) for a, b in pairwise(line))


def _split_at_silences(turns: Sequence[TurnMark], policy: Policy) -> Iterator[Sequence[TurnMark]]:
    start = 0
    for index in range(1, len(turns)):
        if is_silence(turns[index - 1].occurred_at, turns[index].occurred_at, policy):
            yield turns[start:index]
            start = index
    if turns:
        yield turns[start:]


def _is_over(run: Sequence[TurnMark], policy: Policy) -> bool:
    if policy.hot == "token_budget":
        return sum(turn.tokens for turn in run) > policy.hot_capacity_tokens
    return len(run) > policy.hot_capacity_turns


def _is_whole(page: Sequence[TurnMark], run: Sequence[TurnMark], policy: Policy) -> bool:
    """Tell whether a page would be the same with more turns behind the run: others follow it, or it is full."""
    return len(page) < len(run) or len(page) == _most_turns(policy)


def _most_turns(policy: Policy) -> int | None:
    """Return how many turns a page holds at most; None when only its tokens are counted."""
    if policy.page_unit == "messages":
        return 1 if policy.hot == "fifo_one" else policy.page_size_turns
    # An exchange that goes on and on is cut, or it would stay in hot for ever.
    return policy.hot_capacity_turns if policy.page_unit == "exchange" else None


def _cut(run: Sequence[TurnMark], policy: Policy) -> Iterator[Sequence[TurnMark]]:
    """Yield the pages of turns without a silence; where one ends depends on nothing behind its next turn."""
    most, page = _most_turns(policy), _Page()
    for index, turn in enumerate(run):
        opens = index > 0 and turn.role == "user" and run[index - 1].role != "user"
        if page.turns and (len(page.turns) == most or page.ends_before(turn, policy, opens=opens)):
            yield page.turns
            page = _Page()
        page.turns.append(turn)
        page.tokens += turn.tokens
        page.exchanges += opens or page.exchanges == 0
    if page.turns:
        yield page.turns


@dataclass(slots=True)
class _Page:
    """A page being filled."""

    turns: list[TurnMark] = field(default_factory=list)
    tokens: int = 0
    exchanges: int = 0

    def ends_before(self, turn: TurnMark, policy: Policy, *, opens: bool) -> bool:
        """Tell whether the next turn does not fit; `opens` when it is a question behind an answer."""
        if policy.page_unit == "tokens":
            return self.tokens + turn.tokens > policy.page_size_tokens
        exchanges = 1 if policy.hot == "fifo_one" else policy.page_size_exchanges
        return policy.page_unit == "exchange" and opens and self.exchanges == exchanges


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
