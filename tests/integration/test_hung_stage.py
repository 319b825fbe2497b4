"""A stage that stands still is not beaten for ever: its process ends, and what else it holds is free at once."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.store.ledger import owe
from tests.builders import claim_due, create_scope, rows
from tests.conftest import Stack
from workers import runtime
from workers.runtime import HUNG, LeaseKeeper

LEASE_SECONDS = 0.3
STATES = "select subject_key, state, attempts from memoryos.work order by subject_key"


class _Exit:
    """Stands in for the end of the process."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.came = threading.Event()

    def __call__(self, code: int) -> None:
        self.code = code
        self.came.set()


@pytest.fixture
def exit_(monkeypatch: pytest.MonkeyPatch) -> _Exit:
    """The end of the process, noted instead of done."""
    made = _Exit()
    monkeypatch.setattr(runtime.os, "_exit", made)
    return made


@pytest.fixture
def keeper(stack: Stack, exit_: _Exit) -> Iterator[LeaseKeeper]:
    """A keeper that takes a stage for hung after a tenth of a second."""
    options = {"process": "worker@test", "lease_seconds": LEASE_SECONDS, "stage_seconds": 0.1}
    made = LeaseKeeper(stack.ledger, stack.ledger_database, **options)
    yield made
    made.stop()


STUCK = """
import re
from workers.runtime import keep_watch

keep_watch(1)
re.match("(a+)+$", "a" * 64 + "b")
"""
"""Matching takes longer than anybody lives, and lets no other thread run."""


class TestHungStage:
    def test_what_lets_no_thread_run_ends_its_process(self) -> None:
        """Nobody can beat then, and nobody inside the interpreter can end it; the row runs out as if it was killed."""
        command = [sys.executable, "-c", STUCK]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

        assert ended.returncode == 1
        assert "Timeout" in ended.stderr

    def test_the_process_ends_and_the_others_are_free(self, stack: Stack, keeper: LeaseKeeper, exit_: _Exit) -> None:
        """The hung row runs out with its attempt counted; the one behind it goes back unspent."""
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.EMBED, name, scope) for name in ("hung", "waits")])
        leases = claim_due(stack, lease_seconds=60)
        keeper.take(leases)
        keeper.begin(next(lease for lease in leases if lease.subject_key == "hung"))

        assert exit_.came.wait(10)
        assert exit_.code == HUNG
        assert rows(stack, STATES) == [("hung", "leased", 1), ("waits", "ready", 0)]

    def test_a_stage_that_ended_is_not_hung(self, stack: Stack, keeper: LeaseKeeper, exit_: _Exit) -> None:
        """What was dropped in time, or has not begun, ends nobody."""
        scope = create_scope(stack)
        with stack.app.transaction(stack.tenant_id) as connection:
            owe(connection, stack.tenant_id, [Owed(WorkKind.EMBED, name, scope) for name in ("ended", "waits")])
        ended, waits = claim_due(stack, lease_seconds=60)
        keeper.take([ended, waits])
        keeper.begin(ended)
        keeper.drop(ended)

        assert not exit_.came.wait(5 * LEASE_SECONDS)
