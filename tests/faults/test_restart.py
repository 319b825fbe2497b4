"""Workers come and go: killed in the middle of work or asked to stop, nothing is lost, done twice or left behind."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.embedded.process import kill_session
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from tests.acceptance.conversations import assert_settled, four_conversations, long_conversation
from tests.acceptance.pipelines import running_worker
from tests.acceptance.running import wait_until
from tests.builders import rows, wait_for_a_waiter
from tests.conftest import Stack
from tests.processes import System, running_system

LEASE_SECONDS = 3
# A killed worker takes doorbells along that it had not heard yet: those rows wait until their stamp is stale.
QUICK = {
    "MEMORYOS_LEASE_SECONDS": str(LEASE_SECONDS),
    "MEMORYOS_MODEL_DEADLINE_SECONDS": "2",
    "MEMORYOS_RELAY_STALE_SECONDS": "5",
}
TAKEN_OVER_SECONDS = LEASE_SECONDS + 2
GRACEFUL_SECONDS = 15
DRAIN_SECONDS = 120.0
TURNS = 240
KILLS = 3
ROWS_BETWEEN_KILLS = 15

LOCK_PAGES = text("lock table memoryos.page in share row exclusive mode")
NOW = text("select clock_timestamp()")
ADVANCES = """
    select state, attempts, executions, last_error_class from memoryos.work where kind = 'advance' order by state
"""
TAKEN_OVER = """
    select max(extract(epoch from finished_at - cast(:killed_at as timestamptz))) from memoryos.work
     where kind = 'advance'
"""
OWNERS = "select distinct owner from memoryos.work where state = 'leased'"
LEASED = "select work_id from memoryos.work where state = 'leased'"
OPEN = "select work_id from memoryos.work where state in ('ready', 'leased') limit 1"
DONE = "select count(*) from memoryos.work where state = 'done'"
TROUBLED = "select kind, attempts, last_error_class from memoryos.work where attempts > 1 or last_error_class <> ''"
ONCE_A_PAGE = ["page_sealed", "page_summarized", "page_assigned", "page_distilled"]
DOUBLED = """
    select kind, subject_id from memoryos.event where kind = any(cast(:once as text[]))
     group by kind, subject_id having count(*) > 1
"""


@pytest.fixture
def system(stack: Stack, own_valkey: EmbeddedValkey, tmp_path: Path) -> Iterator[System]:
    """A served API and a relay with short leases, and no worker yet."""
    with ExitStack() as started:
        system = started.enter_context(running_system(stack, own_valkey, tmp_path / "processes.log"))
        started.enter_context(system.process("relay", **QUICK))
        yield system


@contextmanager
def _in_the_middle(stack: Stack, system: System) -> Iterator[Connection]:
    """Owe two conversations to advance; yields while one worker holds both rows and waits in the stage of one.

    It waits for the connection that is yielded, and a statement waits for ten seconds at most.
    """
    turns = [*long_conversation(14, lang="ja"), *long_conversation(14, lang="ko")]
    with stack.owner.engine.connect() as connection, system.client() as client:
        connection.execute(LOCK_PAGES)
        client.add_turns(turns)
        assert wait_until(lambda: len(rows(stack, LEASED)) == 2, seconds=8)
        wait_for_a_waiter(stack)
        yield connection


def _post(system: System) -> list[str]:
    sent = []
    with system.client() as client:
        for turns in four_conversations(TURNS):
            sent += [turn["client_turn_id"] for turn in turns]
            client.add_turns(turns)
    return sent


def _count_done(stack: Stack) -> Any:
    return rows(stack, DONE)[0][0]


def _wait_for_progress(stack: Stack) -> None:
    """Return once so many more rows are done, or none is left: a quick machine may be through already."""
    enough = _count_done(stack) + ROWS_BETWEEN_KILLS
    assert wait_until(lambda: _count_done(stack) >= enough or not rows(stack, OPEN), seconds=DRAIN_SECONDS)


@pytest.mark.slow
class TestKill:
    def test_another_worker_does_its_rows_within_the_lease(self, stack: Stack, system: System) -> None:
        """SIGKILL in the first of two rows: a lease and two seconds later another has done both; one try is lost."""
        with running_worker(system, **QUICK) as one, running_worker(system, **QUICK) as other:
            with _in_the_middle(stack, system) as lock:
                ((owner,),) = rows(stack, OWNERS)
                killed_at = lock.execute(NOW).scalar_one()
                kill_session({str(one.pid): one, str(other.pid): other}[owner.partition(":")[2]])
            with system.client() as client:
                client.wait(DRAIN_SECONDS)

        assert sorted((state, attempts) for state, attempts, *_ in rows(stack, ADVANCES)) == [("done", 1), ("done", 2)]
        assert 0 < rows(stack, TAKEN_OVER, killed_at=killed_at)[0][0] <= TAKEN_OVER_SECONDS
        assert rows(stack, DOUBLED, once=ONCE_A_PAGE) == []

    def test_a_busy_line_loses_and_doubles_nothing(self, stack: Stack, system: System) -> None:
        """Workers that are killed one after the other, wherever they are: every effect is there once."""
        sent = _post(system)
        for _ in range(KILLS):
            with running_worker(system, **QUICK) as victim:
                _wait_for_progress(stack)
                kill_session(victim)
        with running_worker(system, **QUICK), system.client() as client:
            assert client.wait(DRAIN_SECONDS)["dead"] == 0

        assert rows(stack, DOUBLED, once=ONCE_A_PAGE) == []
        assert_settled(stack, sent, hot_turns=DEFAULT.hot_capacity_turns)


@pytest.mark.slow
class TestStop:
    def test_a_worker_in_the_middle_ends_its_row_and_hands_the_other_back(self, stack: Stack, system: System) -> None:
        """SIGTERM between two rows: the one at hand is done, the other is free at once with its attempt unspent."""
        with running_worker(system, **QUICK) as worker:
            with _in_the_middle(stack, system):
                worker.send_signal(signal.SIGTERM)
                assert wait_until(lambda: "shutdown" in system.log.read_text().lower(), seconds=8)
            worker.wait(GRACEFUL_SECONDS)

        assert rows(stack, ADVANCES) == [("done", 1, 1, None), ("ready", 0, 1, None)]
        assert rows(stack, LEASED) == []

    def test_a_busy_worker_ends_in_time(self, stack: Stack, system: System) -> None:
        """SIGTERM under load: gone within 15 s, no row leased, no attempt spent, and another goes on from there."""
        sent = _post(system)
        with running_worker(system, **QUICK) as worker:
            _wait_for_progress(stack)
            worker.send_signal(signal.SIGTERM)
            worker.wait(GRACEFUL_SECONDS)
            done = _count_done(stack)
        assert rows(stack, LEASED) == []
        with running_worker(system, **QUICK), system.client() as client:
            assert client.wait(DRAIN_SECONDS)["dead"] == 0

        assert ROWS_BETWEEN_KILLS <= done < _count_done(stack)
        assert rows(stack, TROUBLED) == []
        assert_settled(stack, sent, hot_turns=DEFAULT.hot_capacity_turns)
