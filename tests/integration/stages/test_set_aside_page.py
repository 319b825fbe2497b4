"""A page that merging always fails on stops nothing behind it, and its place is filled when it is replayed."""

import os
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.ids import conversation_id
from memoryos_pipeline.domain.knowledge import Candidate, Neighbour, Verdict
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.store.dead_letters import list_dead, replay
from memoryos_pipeline.store.watermarks import read_watermarks
from tests.builders import create_scope
from tests.conftest import Stack
from tests.integration.stages.cold import Cold, _decide
from workers import runtime
from workers.envelope import deliver
from workers.runtime import LeaseKeeper, Runtime

DUE = text("""
    update memoryos.work set run_after = clock_timestamp()
     where state = 'ready' and kind in ('distill', 'merge', 'merge_page') returning work_id
""")
HISTORY = "select content, status from memoryos.knowledge order by turn_at"


@pytest.fixture
def cold(stack: Stack) -> Iterator[Cold]:
    """A memory with one truth, whose worker is this process."""
    cold = Cold(stack)
    keeper = LeaseKeeper(stack.ledger, stack.ledger_database, process="worker@test", lease_seconds=60)
    runtime._runtime[:] = [
        Runtime(os.getpid(), "test", Settings(), cold.parts, stack.ledger, stack.ledger_database, keeper)
    ]
    cold.page("residence=Kyoto", day=-1)
    _work(stack)
    yield cold
    keeper.stop()
    runtime.forget_runtime()


def _work(stack: Stack) -> None:
    """Deliver what is owed, pauses left out, until nothing is."""
    for _ in range(30):
        with stack.app.transaction(stack.tenant_id) as connection:
            due = list(connection.execute(DUE).scalars())
        if not due:
            return
        deliver(due)
    pytest.fail(f"{due} is owed for ever")


def _refuse_fukuoka(candidate: Candidate, near: Sequence[Neighbour]) -> Verdict:
    if "Fukuoka" in candidate.content:
        raise InvalidOutputError("no verdict on it")
    return _decide(candidate, near)


def _merged(cold: Cold) -> int:
    conversation = conversation_id(create_scope(cold.stack), "c1")
    with cold.stack.app.transaction(cold.tenant_id) as connection:
        marks = read_watermarks(connection, cold.tenant_id, conversation)
    assert marks is not None
    return marks.through["merged"]


class TestSetAside:
    def test_the_memory_goes_on_behind_it(self, cold: Cold) -> None:
        """The page alone is given up, with its reason; the one behind it is merged, and the gap is told."""
        cold.model.overrule = _refuse_fukuoka
        page = cold.page("residence=Fukuoka", day=0)
        cold.page("residence=Osaka", day=1)
        _work(cold.stack)

        [dead] = list_dead(cold.stack.ledger_database)
        assert (dead.kind, dead.subject_key) == ("merge_page", str(page))
        assert (dead.error_class, dead.error) == ("invalid_output", "InvalidOutputError: no verdict on it")
        assert cold.live() == ["Maya: the residence is Osaka"]
        assert cold.rows("select state, attempts from memoryos.work where kind = 'merge'") == [("done", 1)]
        assert cold.rows("select subject_id from memoryos.event where kind = 'page_set_aside'") == [(page,)]
        assert cold.rows("select * from memoryos.violation_i6_provenance") == []
        assert _merged(cold) == 1

    def test_a_replay_fills_the_gap_by_the_time_it_was_said_at(self, cold: Cold) -> None:
        """Merged late, it becomes history: what was said after it stays the truth."""
        cold.model.overrule = _refuse_fukuoka
        cold.page("residence=Fukuoka", day=0)
        cold.page("residence=Osaka", day=1)
        _work(cold.stack)
        cold.model.overrule = None
        [dead] = list_dead(cold.stack.ledger_database)
        replay(cold.stack.owner, cold.stack.ledger_database, [dead.work_id])
        _work(cold.stack)

        assert cold.rows(HISTORY) == [
            ("Maya: the residence is Kyoto", "superseded"),
            ("Maya: the residence is Fukuoka", "superseded"),
            ("Maya: the residence is Osaka", "active"),
        ]
        assert (cold.rows("select count(*) from memoryos.candidate"), _merged(cold)) == ([(0,)], 3)
        assert list_dead(cold.stack.ledger_database) == []
