"""The breaker opens over failures, lets one probe through, and closes again."""

from datetime import UTC, datetime, timedelta

from memoryos_pipeline.domain.breaker import Breaker, Outcome, admit, note_outcome

START = datetime(2026, 3, 1, tzinfo=UTC)


def _after(*outcomes: Outcome, breaker: Breaker | None = None, every_seconds: float = 1.0) -> tuple[Breaker, datetime]:
    state, now = breaker or Breaker(window_at=START), START
    for outcome in outcomes:
        state = note_outcome(state, outcome, now, reason="529")
        now += timedelta(seconds=every_seconds)
    return state, now


class TestOpen:
    def test_half_of_twenty_calls_open_it(self) -> None:
        """Ten failures among twenty calls within the window stop the next call, for half a minute at first."""
        state, now = _after(*(["answered", "failed"] * 10))

        assert (state.phase, state.reason, state.trips) == ("open", "529", 1)
        assert 0 < admit(state, now, probe_seconds=5).wait_seconds <= 30

    def test_fewer_calls_prove_nothing(self) -> None:
        """Nineteen failures in a row are not twenty calls."""
        assert _after(*(["failed"] * 19))[0].phase == "closed"

    def test_failures_far_apart_do_not_add_up(self) -> None:
        """What failed in an earlier window is forgotten."""
        assert _after(*(["failed"] * 40), every_seconds=10)[0].phase == "closed"

    def test_a_refused_credential_opens_it_at_once(self) -> None:
        """Nobody asks again before the time the refusal calls for."""
        state = note_outcome(Breaker(window_at=START), "refused", START, reason="401", wait_seconds=300)

        assert admit(state, START + timedelta(seconds=299), probe_seconds=5).wait_seconds == 1


class TestProbe:
    def test_one_call_is_let_through(self) -> None:
        """After cooling one call is admitted; another waits until that one has ended or is given up."""
        state, _ = _after(*(["failed"] * 20))
        later = START + timedelta(minutes=5)
        first = admit(state, later, probe_seconds=5)
        second = admit(first.breaker, later, probe_seconds=5)
        third = admit(first.breaker, later + timedelta(seconds=6), probe_seconds=5)

        assert (first.is_admitted, second.wait_seconds, third.is_admitted) == (True, 5, True)

    def test_an_answer_closes_it(self) -> None:
        """A probe that is answered forgives everything."""
        probing = Breaker(window_at=START, phase="half_open", trips=3)

        assert note_outcome(probing, "answered", START) == Breaker(window_at=START)

    def test_a_failed_probe_cools_twice_as_long(self) -> None:
        """Each trip doubles the pause, up to ten minutes."""
        pauses = []
        for trips in range(8):
            state = note_outcome(Breaker(window_at=START, phase="half_open", trips=trips), "failed", START)
            assert state.retry_at is not None
            pauses.append((state.retry_at - START).total_seconds())

        assert pauses == [30, 60, 120, 240, 480, 600, 600, 600]
