"""What becomes of failures: of one row, and of a kind as such."""

from uuid import UUID

import pytest

from memoryos_pipeline.domain.work import ErrorClass, Tallied, decide_retry, kinds_to_pause

ONE, TWO = UUID(int=1), UUID(int=2)


def _pause(*rows: tuple[UUID, str, int]) -> dict[str, str]:
    tallies = [Tallied("distill", tenant, outcome, count) for tenant, outcome, count in rows]
    return kinds_to_pause(tallies, share=0.5, least=200)


class TestDecideRetry:
    @pytest.mark.parametrize(("deferred_seconds", "dead"), [(0.0, False), (86_399.0, False), (86_400.0, True)])
    def test_a_deferral_burns_nothing_and_ends_after_a_day(self, deferred_seconds: float, dead: bool) -> None:
        """However often it is put off: what counts is for how long nothing else has happened."""
        decision = decide_retry(
            ErrorClass.DEFERRED, attempts=1, max_attempts=5, jitter=0.5, retry_after_seconds=60,
            deferred_seconds=deferred_seconds,
        )  # fmt: skip

        assert (decision.dead, decision.burns_attempt, decision.delay_seconds) == (dead, False, 60)

    def test_an_old_failure_is_not_given_up_for_its_age(self) -> None:
        """The age of deferrals says nothing about a try that counts."""
        decision = decide_retry(
            ErrorClass.TRANSIENT, attempts=1, max_attempts=5, jitter=0, deferred_seconds=1e6
        )  # fmt: skip

        assert not decision.dead


class TestKindsToPause:
    def test_a_kind_that_fails_is_paused(self) -> None:
        """One tenant alone: most of its tries failed alike."""
        assert _pause((ONE, "transient", 300), (ONE, "done", 100)) == {"distill": "transient"}

    def test_one_tenant_stops_nobody_else(self) -> None:
        """However many rows of one tenant fail, the others count as much as it does."""
        assert _pause((ONE, "transient", 100_000), (TWO, "done", 3)) == {}

    def test_a_few_failures_are_no_reason(self) -> None:
        """Fewer than would be missed are given up one by one."""
        assert _pause((ONE, "transient", 199)) == {}

    def test_deferrals_are_not_failures(self) -> None:
        """A provider that asks to wait has its own breaker."""
        assert _pause((ONE, "deferred", 5_000)) == {}

    def test_different_failures_do_not_add_up(self) -> None:
        """A kind is broken when it fails in one way."""
        assert _pause((ONE, "transient", 300), (ONE, "invalid_output", 300), (ONE, "permanent", 300)) == {}
