"""A change of the schema gives way: whoever waits behind it is answered before their own patience is over."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection, event, text
from sqlalchemy.exc import OperationalError

from memoryos_pipeline.store.migrate import migrate
from memoryos_pipeline.store.sweeps import owe_due
from tests.builders import record, rows, wait_for_a_waiter
from tests.conftest import Stack

PATIENCE = text("""
    select split_part(given, '=', 2) from pg_roles, unnest(rolconfig) given
     where rolname in ('memoryos_app', 'memoryos_ledger') and given like 'lock_timeout=%'
""")
GIVES_WAY = re.compile(r"set lock_timeout = '(\d+)s'")
SHORT_MS = 500
LOCK_TIMEOUT = "55P03"


def _change(connection: Connection) -> str:
    """Want a table for oneself, as a migration does, with less patience than ours; return how that ended."""
    connection.execute(text(f"set local lock_timeout = {SHORT_MS}"))
    try:
        connection.execute(text("lock table memoryos.turn, memoryos.conversation in access exclusive mode"))
    except OperationalError as error:
        return str(getattr(error.orig, "sqlstate", None))
    return "changed"


class TestMigrate:
    def test_it_waits_for_less_than_callers_do(self, stack: Stack) -> None:
        """It asks for seconds, the roles of callers wait longer; run again it changes nothing."""
        said: list[str] = []

        def note(*given: Any) -> None:
            said.append(given[2])

        event.listen(stack.owner.engine, "before_cursor_execute", note)
        migrate(stack.owner)
        event.remove(stack.owner.engine, "before_cursor_execute", note)
        (seconds,) = [int(found[1]) for each in said if (found := GIVES_WAY.search(each))]
        with stack.owner.across_tenants() as connection:
            patience = [int(each.removesuffix("s")) for each in connection.execute(PATIENCE).scalars()]

        assert len(patience) == 2
        assert 0 < seconds < min(patience)
        assert not any(each.lstrip().startswith(("create", "alter", "drop")) for each in said)

    def test_callers_and_sweeps_go_on_behind_it(self, stack: Stack) -> None:
        """While it waits for a long reader turns and sweeps queue up behind it; it gives up, they succeed."""
        record(stack, "before")
        with ThreadPoolExecutor(3) as threads, stack.app.transaction(stack.tenant_id) as reader:
            reader.execute(text("select count(*) from memoryos.turn"))
            with stack.owner.across_tenants() as owner:
                changing = threads.submit(_change, owner)
                wait_for_a_waiter(stack)
                telling = threads.submit(record, stack, "meanwhile", first=2)
                sweeping = threads.submit(owe_due, stack.ledger_database)
                ended = changing.result(30)
                owner.rollback()
            telling.result(30)
            sweeping.result(30)

        assert ended == LOCK_TIMEOUT
        assert rows(stack, "select count(*) from memoryos.turn") == [(2,)]
