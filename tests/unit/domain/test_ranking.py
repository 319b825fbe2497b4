"""Ranking is one explained sum of scaled signals."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.ranking import (
    DEFAULT,
    STAND_IN,
    Candidate,
    Place,
    Profile,
    rank,
    scale,
)

CHAT, OTHER = UUID(int=1), UUID(int=2)
START = datetime(2026, 3, 1, tzinfo=UTC)
ONLY_WORDS = Profile("words", {"bm25": 1.0})


def turn(seq: int, *, chat: UUID = CHAT, at: datetime | None = None, **features: float) -> Candidate:
    """A turn at its place with its features."""
    place = Place(chat, seq, at or START + timedelta(minutes=seq))
    return Candidate("turn", UUID(int=chat.int * 1000 + seq), features, place)


def order(candidates: list[Candidate], profile: Profile) -> list[int]:
    """The seq of each turn in ranked order."""
    return [each.candidate.place.seq for each in rank(candidates, profile) if each.candidate.place]


FEATURES = st.dictionaries(st.sampled_from(list(DEFAULT.weights)), st.floats(-1, 50, allow_nan=False), max_size=8)


class TestRank:
    @given(st.lists(FEATURES, max_size=12))
    def test_signals_sum_to_a_bounded_score(self, rows: list[dict[str, float]]) -> None:
        """Whatever was recorded, scores are within [-0.1, 1], explained to 1e-9, and in order."""
        ranked = rank([turn(seq, **features) for seq, features in enumerate(rows)])

        assert len(ranked) == len(rows)
        assert all(abs(sum(each.signals.values()) - each.score) < 1e-9 for each in ranked)
        assert all(-0.1 <= each.score <= 1.0 + 1e-9 for each in ranked)
        assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)

    def test_the_order_of_arrival_changes_nothing(self) -> None:
        """Ties are broken by the newer turn, then by id, so a shuffled input gives the same ranking."""
        candidates = [turn(seq, bm25=float(seq % 3)) for seq in range(20)]
        shuffled = random.Random(3).sample(candidates, k=20)

        assert order(candidates, ONLY_WORDS) == order(shuffled, ONLY_WORDS)
        assert order(candidates, ONLY_WORDS)[:3] == [17, 14, 11]

    def test_neighbours_lend_their_score(self) -> None:
        """Between equal turns the one next to a strong turn comes first."""
        candidates = [turn(1, bm25=0.0), turn(5, bm25=0.0), turn(6, bm25=9.0)]
        profile = Profile("context", {"bm25": 1.0, "previous": 0.1, "next": 0.1})

        assert order(candidates, profile) == [6, 5, 1]
        assert rank(candidates, profile)[1].signals == {"next": pytest.approx(0.1 / 1.2)}

    def test_a_session_ends_with_a_silence(self) -> None:
        """A strong turn lifts the turns of its session, not those after six silent hours."""
        morning, evening = START, START + timedelta(hours=7)
        candidates = [
            turn(1, at=morning, bm25=0.0), turn(2, at=morning, bm25=9.0),
            turn(3, at=evening, bm25=0.0), turn(4, chat=OTHER, at=morning, bm25=0.0),
        ]  # fmt: skip
        profile = Profile("session", {"bm25": 1.0, "session": 0.5})
        lifted = [each.candidate for each in rank(candidates, profile) if "session" in each.signals]

        assert lifted == [candidates[1], candidates[0]]

    def test_a_short_session_is_not_punished(self) -> None:
        """A new conversation of one good turn scores by that turn, not by the turns it does not have."""
        candidates = [turn(1, chat=OTHER, bm25=9.0), *[turn(seq, bm25=5.0) for seq in range(1, 9)]]
        best = rank(candidates, Profile("session", {"bm25": 1.0, "session": 0.5}))[0]

        assert best.candidate.place is not None
        assert best.candidate.place.conversation_id == OTHER
        assert best.signals["session"] == pytest.approx(0.5 / 1.5)

    def test_a_turn_without_a_vector_is_not_buried(self) -> None:
        """Where others have vectors, a fresh turn gets what its words let expect, under a name of its own."""
        candidates = [turn(1, bm25=9.0), turn(2, bm25=1.0, dense=0.9), turn(3, bm25=0.0, dense=0.3)]
        ranked = rank(candidates, Profile("hybrid", {"bm25": 0.2, "dense": 0.7}))

        assert ranked[0].candidate is candidates[0]
        assert set(ranked[0].signals) == {"bm25", STAND_IN}

    def test_noise_among_cosines_is_not_blown_up(self) -> None:
        """Cosines that hardly differ do not outweigh a match by words."""
        candidates = [
            turn(1, bm25=9.0, dense=0.801),
            turn(2, bm25=0.0, dense=0.803),
            turn(3, bm25=0.0, dense=0.8),
        ]

        assert order(candidates, Profile("hybrid", {"bm25": 0.2, "dense": 0.7}))[0] == 1

    def test_knowledge_stands_in_the_context_of_its_sources(self) -> None:
        """Knowledge borrows neighbours and session from the turns it cites; a page borrows nothing."""
        strong = [turn(1, bm25=9.0), turn(2, bm25=0.0), turn(9, bm25=0.0)]
        knowledge = Candidate("knowledge", UUID(int=5), {"bm25": 0.0}, sources=((CHAT, 2), (CHAT, 9)))
        page = Candidate("page", UUID(int=6), {"bm25": 0.0}, sources=((CHAT, 1), (CHAT, 2)))
        profile = Profile("context", {"bm25": 1.0, "previous": 0.1, "session": 0.3})
        ranked = {each.candidate.owner_id: each for each in rank([*strong, knowledge, page], profile)}

        assert ranked[knowledge.owner_id].signals["previous"] > 0
        assert ranked[knowledge.owner_id].signals["session"] > 0
        assert ranked[page.owner_id].signals == {}

    def test_decay_is_a_bounded_bias(self) -> None:
        """A faded memory loses against an equal one, and still wins against a worse one."""
        fresh, faded = turn(1, bm25=5.0, vitality=1.0), turn(2, bm25=5.0, vitality=0.0)
        better = replace(faded, features={"bm25": 9.0, "vitality": 0.0})
        other = turn(3, bm25=0.0, vitality=1.0)
        profile = Profile("decay", {"bm25": 0.2, "vitality": 0.05})

        assert order([fresh, faded, other], profile)[0] == 1
        assert order([fresh, better, other], profile)[0] == 2


class TestScale:
    def test_it_is_min_max(self) -> None:
        """The lowest becomes 0, the highest 1, unknown values 0."""
        assert scale([2.0, 4.0, None, 3.0]) == [0.0, 1.0, 0.0, 0.5]

    def test_constants_and_nothing(self) -> None:
        """A constant positive column is 1 everywhere, a constant zero is 0, nothing known is 0."""
        assert scale([3.0, 3.0]) == [1.0, 1.0]
        assert scale([0.0, 0.0]) == [0.0, 0.0]
        assert scale([None, None]) == [0.0, 0.0]
