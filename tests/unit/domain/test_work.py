"""What becomes of failures: of one row, and of a kind as such."""

from uuid import UUID

import pytest

from memoryos_pipeline.domain.work import ErrorClass, Tallied, decide_retry, find_troubled, kinds_to_pause

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

    def test_lost_workers_are_the_machine_s(self) -> None:
        """Whoever loses many workers must not find the kind paused as well."""
        assert _pause((ONE, "lease_expired", 5_000)) == {}


def _troubled(*rows: tuple[UUID, str, int]) -> set[UUID]:
    tallies = [Tallied("distill", tenant, outcome, count) for tenant, outcome, count in rows]
    return {tenant for _, tenant in find_troubled(tallies, share=0.5, least=20)}


class TestFindTroubled:
    def test_only_who_mostly_fails_is_troubled(self) -> None:
        """Failures of every class add up, those that took their worker along as well; more than half must fail."""
        rows = [(ONE, "transient", 15), (ONE, "lease_expired", 6), (ONE, "done", 20), (TWO, "done", 21)]

        assert _troubled(*rows, (TWO, "transient", 21)) == {ONE}

    def test_a_few_failures_trouble_nobody(self) -> None:
        """A tenant with little work is not judged by a bad minute."""
        assert _troubled((ONE, "transient", 19)) == set()

    def test_deferrals_are_neither_failures_nor_successes(self) -> None:
        """An empty budget or a busy provider says nothing about the rows."""
        assert _troubled((ONE, "deferred", 500), (ONE, "transient", 20)) == {ONE}
        assert _troubled((ONE, "deferred", 500)) == set()
