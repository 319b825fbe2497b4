"""A sweep owes what is due once, whoever else is at work on the same memories."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from sqlalchemy import text

from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import START, numbered, record, rows, set_clock, wait_for_a_waiter
from tests.conftest import Stack

OWED = "select subject_key from memoryos.work where kind = 'advance' and state = 'ready'"
ERASE = text("delete from memoryos.scope where user_id = :user_id")


class TestSweep:
    def test_an_erasure_under_its_eyes_does_not_end_it(self, stack: Stack) -> None:
        """A user is erased while the sweep looks: it owes nothing of theirs and everything of the others."""
        set_clock(stack, START)
        record(stack, *numbered(3), user_id="gone")
        kept = record(stack, *numbered(3), user_id="kept")
        set_clock(stack, START + timedelta(days=1))
        with ThreadPoolExecutor(1) as thread:
            with stack.app.transaction(stack.tenant_id) as connection:
                connection.execute(ERASE, {"user_id": "gone"})
                sweep = thread.submit(owe_due, stack.ledger_database, name="flush")
                wait_for_a_waiter(stack)
            owed = sweep.result()

        assert owed == 1
        assert rows(stack, OWED) == [(str(kept),)]
