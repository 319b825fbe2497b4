"""Paging for every sequence of turns and every way they can arrive."""

from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.paging import PageSpan, TurnMark, plan_pages
from memoryos_pipeline.domain.policies import Hot, PageUnit, Policy

START = datetime(2026, 3, 1, tzinfo=UTC)
GAPS_HOURS = st.sampled_from([0.0, 0.1, 1.0, 5.99, 6.0, 30.0, -8.0])


@st.composite
def _sequences(draw: st.DrawFn) -> list[TurnMark]:
    moment, marks = START, []
    for seq, hours in enumerate(draw(st.lists(GAPS_HOURS, min_size=1, max_size=60)), start=1):
        moment += timedelta(hours=hours)
        role, tokens = draw(st.sampled_from(["user", "assistant", "tool"])), draw(st.integers(1, 90))
        marks.append(TurnMark(seq, moment, role=role, tokens=tokens))
    return marks


@st.composite
def _policies(draw: st.DrawFn) -> Policy:
    size, budget = draw(st.integers(1, 7)), draw(st.integers(20, 200))
    hot: Hot = draw(st.sampled_from(get_args(Hot)))
    unit: PageUnit = draw(
        st.sampled_from([unit for unit in get_args(PageUnit) if (hot, unit) != ("fifo_one", "tokens")])
    )
    return Policy(
        hot=hot, page_unit=unit, page_size_turns=size, hot_capacity_turns=draw(st.integers(size, 15)),
        page_size_exchanges=draw(st.integers(1, 3)), page_size_tokens=budget,
        hot_capacity_tokens=draw(st.integers(budget, 400)),
    )  # fmt: skip


def _sealed_in_batches(turns: list[TurnMark], stops: list[int], policy: Policy) -> list[PageSpan]:
    sealed: list[PageSpan] = []
    for stop in [*sorted(stops), len(turns)]:
        through = sealed[-1].last_seq if sealed else 0
        sealed += plan_pages([turn for turn in turns[:stop] if turn.seq > through], policy)
    return sealed


@given(_sequences(), _policies(), st.lists(st.integers(0, 60), max_size=60))
def test_any_batching_gives_the_same_pages(turns: list[TurnMark], policy: Policy, stops: list[int]) -> None:
    """Planned after each turn, after some, or once at the end: the pages are the same."""
    one_by_one = _sealed_in_batches(turns, list(range(len(turns))), policy)

    assert _sealed_in_batches(turns, stops, policy) == one_by_one
    assert _sealed_in_batches(turns, [], policy) == one_by_one


@given(_sequences(), _policies(), st.booleans())
def test_every_turn_is_in_one_lineage(turns: list[TurnMark], policy: Policy, flush: bool) -> None:
    """Pages cover a contiguous prefix, never overlap, and the rest fits the hot buffer."""
    pages = plan_pages(turns, policy, flush=flush)
    covered = [seq for page in pages for seq in range(page.first_seq, page.last_seq + 1)]

    assert covered == list(range(1, len(covered) + 1))
    if flush:
        assert len(covered) == len(turns)
    elif policy.hot != "token_budget" and policy.page_unit != "tokens":
        assert len(turns) - len(covered) <= policy.hot_capacity_turns
    if policy.page_unit == "messages":
        assert all(page.turn_count <= policy.page_size_turns for page in pages)


@given(_sequences(), _policies())
def test_a_page_of_tokens_holds_no_more_than_it_may(turns: list[TurnMark], policy: Policy) -> None:
    """Only a page of one turn is longer than a page of tokens may be."""
    said = {turn.seq: turn.tokens for turn in turns}
    for page in plan_pages(turns, policy, flush=True):
        tokens = sum(said[seq] for seq in range(page.first_seq, page.last_seq + 1))
        assert policy.page_unit != "tokens" or tokens <= policy.page_size_tokens or page.turn_count == 1


@given(_sequences(), _policies())
def test_what_is_over_the_budget_waits_only_for_its_page(turns: list[TurnMark], policy: Policy) -> None:
    """Under `token_budget` more than the budget stays only as one page that is not whole yet."""
    pages = plan_pages(turns, policy)
    left = turns[pages[-1].last_seq if pages else 0 :]
    if policy.hot == "token_budget" and sum(turn.tokens for turn in left) > policy.hot_capacity_tokens:
        assert len(plan_pages(left, policy, flush=True)) == 1


@given(_sequences(), _policies())
def test_no_page_spans_a_silence(turns: list[TurnMark], policy: Policy) -> None:
    """Two turns of one page are never a page break apart."""
    moments = {turn.seq: turn.occurred_at for turn in turns}
    silence = timedelta(hours=policy.page_break_hours)
    for page in plan_pages(turns, policy, flush=True):
        for seq in range(page.first_seq, page.last_seq):
            assert abs(moments[seq + 1] - moments[seq]) < silence
