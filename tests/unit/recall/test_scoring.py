"""Ranking by columns is the domain's formula: the same order, the same scores, the same signals."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain import question_dates, ranking
from memoryos_pipeline.domain.question_dates import DateWindow
from memoryos_pipeline.domain.ranking import DEFAULT, ENTITIES, Candidate, Place, Profile
from memoryos_pipeline.recall.columns import best_of, find, id_array, uuid_at
from memoryos_pipeline.recall.features import Candidates, TurnPlaces, closeness
from memoryos_pipeline.recall.gather import KINDS
from memoryos_pipeline.recall.scoring import rank, scale

START = datetime(2026, 3, 1, tzinfo=UTC)
CHATS = [UUID(int=1 << 8), UUID(int=2 << 8)]
"""Ids that end in zero bytes, which numpy takes for padding."""
NAMES = [*ENTITIES.weights, "entity_owners"]
FEATURES = st.dictionaries(st.sampled_from(NAMES), st.floats(-1, 50, allow_nan=False), max_size=8)
TURNS = st.dictionaries(
    st.tuples(st.integers(0, 1), st.integers(1, 12)), st.tuples(FEATURES, st.integers(0, 30)), max_size=12
)
CITED = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 13)), max_size=3, unique=True)
PROFILES = st.sampled_from(
    [DEFAULT, ENTITIES, Profile("words", {"bm25": 1.0}), Profile("context", {"dense": 1.0, "session": 0.3})]
)


def in_columns(candidates: Sequence[Candidate]) -> Candidates:
    """The same candidates as recall holds them; turns come first, in order of their places."""
    ids = np.array([each.owner_id.bytes for each in candidates], dtype="S16")
    chats = np.array(sorted(each.bytes for each in CHATS), dtype="S16")
    turns = [each.place for each in candidates if each.place]
    lent = [
        (position, CHATS.index(where), seq)
        for position, each in enumerate(candidates)
        for where, seq in ranking.places_of(each)
    ]
    names = {name for each in candidates for name in each.features}
    columns = {name: np.array([each.features.get(name, np.nan) for each in candidates]) for name in names}
    lenders, chat_of, seqs = np.array(lent, dtype=np.intp).reshape(-1, 3).T
    return Candidates(
        kinds=np.array([KINDS.index(each.kind) for each in candidates], dtype=np.intp),
        owner_ids=ids,
        features=columns,
        turns=TurnPlaces(
            chats,
            np.array([CHATS.index(place.conversation_id) for place in turns], dtype=np.intp),
            np.array([place.seq for place in turns], dtype=np.intp),
            np.array([place.at.timestamp() for place in turns]),
        ),
        lenders=lenders,
        conversations=chat_of,
        seqs=seqs,
    )


class TestRank:
    @given(TURNS, st.lists(st.tuples(FEATURES, CITED), max_size=5), FEATURES, PROFILES)
    def test_it_is_the_formula_of_the_domain(
        self,
        said: dict[tuple[int, int], tuple[dict[str, float], int]],
        known: list[tuple[dict[str, float], list[tuple[int, int]]]],
        summary: dict[str, float],
        profile: Profile,
    ) -> None:
        """Turns of two conversations, knowledge that cites them and a page: every signal of every one is the same."""
        turns = [
            Candidate(
                "turn", UUID(int=chat * 100 + seq), features, Place(CHATS[chat], seq, START + timedelta(hours=at))
            )
            for (chat, seq), (features, at) in sorted(said.items())
        ]
        knowledge = [
            Candidate(
                "knowledge", UUID(int=1000 + n), features, sources=tuple((CHATS[chat], seq) for chat, seq in cited)
            )
            for n, (features, cited) in enumerate(known)
        ]
        candidates = [*turns, *knowledge, Candidate("page", UUID(int=5000), summary, sources=((CHATS[0], 1),))]
        expected = ranking.rank(candidates, profile)
        got = rank(in_columns(candidates), profile)

        assert [candidates[place] for place in got.order] == [each.candidate for each in expected]
        assert [float(got.scores[place]) for place in got.order] == [each.score for each in expected]
        assert [got.signals_of(place) for place in got.order] == [each.signals for each in expected]

    def test_nothing_ranks_as_nothing(self) -> None:
        """Without a candidate there is no result and no error."""
        assert len(rank(in_columns([])).order) == 0


class TestScale:
    @given(st.lists(st.none() | st.floats(-5, 5), max_size=8), st.sampled_from([0.0, 0.5]))
    def test_it_is_the_scale_of_the_domain(self, column: list[float | None], least_spread: float) -> None:
        """Unknown values, constants and noise are treated alike."""
        values = np.array([np.nan if value is None else value for value in column], dtype=np.float64)

        assert scale(values, least_spread).tolist() == ranking.scale(column, least_spread)


class TestCloseness:
    @given(st.lists(st.tuples(st.integers(-90, 90), st.sampled_from(["day", "week", "month"])), max_size=3))
    def test_it_is_that_of_the_domain(self, spans: list[tuple[int, question_dates.Unit]]) -> None:
        """Inside, before and after every window, and without a window."""
        windows = [
            DateWindow(START + timedelta(days=day), START + timedelta(days=day + 7), unit, weight=0.8)
            for day, unit in spans
        ]
        moments = [START + timedelta(days=day) for day in range(-100, 101, 7)]
        got = closeness(windows, np.array([moment.timestamp() for moment in moments]))

        assert got == pytest.approx([question_dates.closeness(windows, moment) for moment in moments])


class TestColumns:
    def test_an_id_survives_whatever_bytes_it_ends_in(self) -> None:
        """Zero bytes at the end of an id are part of it."""
        owners = [UUID(int=1 << 120), UUID(int=5)]
        ids = np.array([each.bytes for each in owners], dtype="S16")

        assert [uuid_at(ids, place) for place in (0, 1)] == owners
        assert id_array(ids) == "{" + ",".join(each.hex for each in owners) + "}"
        assert find(ids, ids[::-1]).tolist() == [1, 0]
        assert find(ids[:1], ids[1:]).tolist() == [-1]

    def test_the_best_of_a_group_ignores_what_is_unknown(self) -> None:
        """A group of unknown values only has none, and what belongs to no group counts nowhere."""
        best = best_of(np.array([1.0, np.nan, 3.0, 9.0]), np.array([0, 1, 0, -1]), count=3)

        assert best[0] == 3.0
        assert np.isnan(best[1:]).all()
