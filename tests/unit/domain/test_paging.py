"""Where pages begin and end."""

from datetime import UTC, datetime, timedelta

from memoryos_pipeline.domain.paging import PageSpan, TurnMark, is_idle, leaves_hot, plan_pages
from memoryos_pipeline.domain.policies import Policy

POLICY = Policy()
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def _turns(count: int, *, first_seq: int = 1, start: datetime = START, lang: str = "en") -> list[TurnMark]:
    return [TurnMark(first_seq + n, start + timedelta(minutes=n), lang) for n in range(count)]


def _seqs(pages: list[PageSpan]) -> list[tuple[int, int]]:
    return [(page.first_seq, page.last_seq) for page in pages]


class TestPlan:
    def test_the_thirteenth_message_seals_the_first_five(self) -> None:
        """Capacity 12, page size 5: twelve stay; after the 13th message 8 stay hot and 1-5 are a page."""
        assert plan_pages(_turns(12), POLICY) == []
        assert _seqs(plan_pages(_turns(13), POLICY)) == [(1, 5)]

    def test_a_burst_leaves_no_more_than_the_capacity(self) -> None:
        """However late the plan is made, pages are cut as if it had been made after each turn."""
        assert _seqs(plan_pages(_turns(30), POLICY)) == [(1, 5), (6, 10), (11, 15), (16, 20)]

    def test_a_silence_ends_a_page_and_empties_what_is_before_it(self) -> None:
        """Seven turns, then six hours of silence: both pages before it are sealed, the short one too."""
        later = _turns(2, first_seq=8, start=START + timedelta(hours=6, minutes=6))

        assert _seqs(plan_pages([*_turns(7), *later], POLICY)) == [(1, 5), (6, 7)]

    def test_a_shorter_silence_ends_nothing(self) -> None:
        """One second less than the page break is no break."""
        later = _turns(2, first_seq=8, start=START + timedelta(hours=6, minutes=6, seconds=-1))

        assert plan_pages([*_turns(7), *later], POLICY) == []

    def test_a_jump_back_in_time_ends_a_page(self) -> None:
        """Turns imported from last year do not share a page with today's."""
        earlier = _turns(2, first_seq=4, start=START - timedelta(days=365))

        assert _seqs(plan_pages([*_turns(3), *earlier], POLICY)) == [(1, 3)]

    def test_a_flush_leaves_nothing_behind(self) -> None:
        """An idle or closed conversation is sealed to the last turn, the rest as a short page."""
        assert _seqs(plan_pages(_turns(7), POLICY, flush=True)) == [(1, 5), (6, 7)]
        assert plan_pages([], POLICY, flush=True) == []

    def test_a_page_carries_the_span_of_its_turns(self) -> None:
        """The times of a page are the earliest and latest turn time, whatever the order of arrival."""
        shuffled = [
            TurnMark(1, START + timedelta(minutes=5)),
            TurnMark(2, START),
            TurnMark(3, START + timedelta(minutes=9)),
        ]
        page = plan_pages(shuffled, POLICY, flush=True)[0]

        assert (page.first_turn_at, page.last_turn_at) == (START, START + timedelta(minutes=9))
        assert page.turn_count == 3

    def test_a_page_is_in_the_language_of_most_of_its_turns(self) -> None:
        """The commonest known language; of equals the first one; unknown only when all are."""

        def language(*langs: str) -> str:
            marks = [TurnMark(n + 1, START, lang) for n, lang in enumerate(langs)]
            return plan_pages(marks, POLICY, flush=True)[0].lang

        assert language("en", "ja", "ja") == "ja"
        assert language("ko", "zh") == "ko"
        assert language("und", "und", "zh") == "zh"
        assert language("und") == "und"


class TestIdle:
    def test_silence_by_the_clock_or_an_explicit_end(self) -> None:
        """Thirty minutes without a turn, or a close, flush a conversation; one second less does not."""
        now = START + timedelta(minutes=30)

        assert is_idle(now, last_activity_at=START, closed_at=None, policy=POLICY)
        assert is_idle(START, last_activity_at=START, closed_at=START, policy=POLICY)
        assert not is_idle(now - timedelta(seconds=1), last_activity_at=START, closed_at=None, policy=POLICY)


class TestLeavesHot:
    def test_too_many_turns_let_a_page_leave(self) -> None:
        """The thirteenth message does; the twelfth does not."""
        moments = [datetime(2026, 5, 4, tzinfo=UTC)]

        assert leaves_hot(unsealed=13, before=None, moments=moments, policy=POLICY)
        assert not leaves_hot(unsealed=12, before=None, moments=moments, policy=POLICY)

    def test_a_silence_lets_the_page_before_it_leave(self) -> None:
        """One turn a day later is enough, whether it came alone or with others."""
        monday, tuesday = datetime(2026, 5, 4, tzinfo=UTC), datetime(2026, 5, 5, tzinfo=UTC)

        assert leaves_hot(unsealed=2, before=monday, moments=[tuesday], policy=POLICY)
        assert leaves_hot(unsealed=2, before=None, moments=[monday, tuesday], policy=POLICY)
        assert not leaves_hot(unsealed=1, before=None, moments=[tuesday], policy=POLICY)


def _exchange(first: int, *roles: str, tokens: int = 10) -> list[TurnMark]:
    return [
        TurnMark(seq, START + timedelta(minutes=seq), role=role, tokens=tokens)
        for seq, role in enumerate(roles, start=first)
    ]


def _spans(turns: list[TurnMark], policy: Policy, *, flush: bool = False) -> list[tuple[int, int]]:
    return [(page.first_seq, page.last_seq) for page in plan_pages(turns, policy, flush=flush)]


class TestHotPolicies:
    def test_fifo_one_lets_one_exchange_go_at_a_time(self) -> None:
        """BAI-LAB: the oldest question and its answer leave when one more comes; an answer is never cut off."""
        policy = Policy(hot="fifo_one", page_unit="exchange", hot_capacity_turns=4)
        turns = _exchange(1, "user", "assistant", "user", "assistant", "user")

        assert _spans(turns[:4], policy) == []
        assert _spans(turns, policy) == [(1, 2)]

    def test_fifo_one_of_messages_lets_one_message_go(self) -> None:
        """The unit is one message, however many a page of a batch would hold."""
        policy = Policy(hot="fifo_one", hot_capacity_turns=3)

        assert _spans(_exchange(1, *["user"] * 5), policy) == [(1, 1), (2, 2)]

    def test_fifo_batch_lets_a_page_of_exchanges_go(self) -> None:
        """Two exchanges a page, with the tool's messages among them."""
        policy = Policy(page_unit="exchange", page_size_exchanges=2, hot_capacity_turns=5)
        turns = _exchange(1, "user", "tool", "assistant", "user", "assistant", "user")

        assert _spans(turns, policy) == [(1, 5)]

    def test_token_budget_lets_pages_go_until_the_rest_fits(self) -> None:
        """Counted in tokens, not in turns."""
        policy = Policy(hot="token_budget", page_size_turns=2, hot_capacity_tokens=400)

        assert _spans(_exchange(1, *["user"] * 5, tokens=100), policy) == [(1, 2)]
        assert _spans(_exchange(1, *["user"] * 4, tokens=100), policy) == []

    def test_pages_of_tokens_are_filled_and_a_long_turn_stands_alone(self) -> None:
        """400 tokens a page; a turn of more is a page of its own."""
        policy = Policy(hot="token_budget", page_unit="tokens", hot_capacity_tokens=400)
        turns = [TurnMark(seq, START, tokens=tokens) for seq, tokens in enumerate([150, 250, 900, 10], start=1)]

        assert _spans(turns, policy, flush=True) == [(1, 2), (3, 3), (4, 4)]

    def test_every_recording_asks_under_a_token_budget(self) -> None:
        """Whoever records counts turns only, so it leaves the counting of tokens to whoever seals."""
        policy = Policy(hot="token_budget")

        assert leaves_hot(unsealed=1, before=None, moments=[START], policy=policy)
