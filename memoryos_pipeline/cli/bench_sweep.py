"""`memoryos bench sweep`: what a sweep costs when nothing is due, and when a thousand statements are."""

import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.embedded.first_run import TENANT_ID, TENANT_NAME
from memoryos_pipeline.embedded.temporary import temporary_postgres
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.stages.forget import forget
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import Ledger
from memoryos_pipeline.store.sweeps import owe_due
from memoryos_pipeline.store.synthetic_knowledge import (
    analyze,
    count_forgotten_events,
    fill_knowledge,
    find_owed_sweeps,
    make_due,
)
from memoryos_pipeline.store.tenants import create_tenant

ROWS_PER_MEMORY = 10_000
DUE = 1_000
DUE_PER_MEMORY = 250
"""Few enough of a memory not to meet the brake."""
ROUNDS = 7
LEASE_SECONDS = 600.0


@dataclass(frozen=True)
class _Roles:
    app: Database
    ledger: Database
    owner: Database


def sweep(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    items: Annotated[int, typer.Option(help="Statements in the database.", min=40_000)] = 1_000_000,
) -> None:
    """Time the sweeps over a database of statements: with none due, then with 1,000 due, forgotten and told."""
    with _database() as roles:
        result = _measure(roles, items=items, console=Console(stderr=True))
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(_table(result))


@contextmanager
def _database() -> Iterator[_Roles]:
    """Run a temporary Postgres and yield its roles."""
    with temporary_postgres() as server:
        roles = _Roles(*(Database(server.url(role), pool_size=2) for role in ("app", "ledger", "owner")))
        create_tenant(roles.owner, TENANT_ID, TENANT_NAME)
        yield roles
        for database in (roles.app, roles.ledger, roles.owner):
            database.dispose()


def _measure(roles: _Roles, *, items: int, console: Console) -> dict[str, Any]:
    users = [f"user-{number}" for number in range(items // ROWS_PER_MEMORY)]
    for number, user_id in enumerate(users, start=1):
        with roles.app.transaction(TENANT_ID) as connection:
            fill_knowledge(connection, TENANT_ID, user_id, rows=ROWS_PER_MEMORY)
        if number % 20 == 0:
            console.print(f"{number * ROWS_PER_MEMORY} of {items} statements", style="dim")
    with roles.owner.across_tenants() as connection:
        analyze(connection)
    idle = [_timed_sweep(roles)[0] for _ in range(ROUNDS)]
    for user_id in users[: DUE // DUE_PER_MEMORY]:
        with roles.app.transaction(TENANT_ID) as connection:
            make_due(connection, TENANT_ID, user_id, rows=DUE_PER_MEMORY)
    with roles.owner.across_tenants() as connection:
        analyze(connection)
    busy_ms, memories = _timed_sweep(roles)
    with roles.app.transaction(TENANT_ID) as connection:
        told = count_forgotten_events(connection, TENANT_ID)
    return {
        "due_0_ms": round(statistics.median(idle), 2),
        "due_1000_ms": round(busy_ms, 1),
        "due_0_worst_ms": round(max(idle), 2),
        "items": len(users) * ROWS_PER_MEMORY,
        "memories_swept": memories,
        "events_written": told,
    }


def _timed_sweep(roles: _Roles) -> tuple[float, int]:
    """Sweep for everything that can be due, do what is owed; return milliseconds and how many memories that were."""
    parts = Parts(roles.app, HashingEmbedder(), None)  # type: ignore[arg-type]  # forgetting asks no model
    started = time.perf_counter()
    owe_due(roles.ledger)
    with roles.ledger.across_tenants() as connection:
        owed = find_owed_sweeps(connection)
    leases = Ledger(roles.ledger).claim(owed, owner="bench", lease_seconds=LEASE_SECONDS) if owed else []
    for lease in leases:
        forget(parts, lease)
    return (time.perf_counter() - started) * 1_000, len(leases)


def _table(result: dict[str, Any]) -> Table:
    table = Table("due", "milliseconds", title=f"sweeping {result['items']:,} statements")
    table.add_row("0", f"{result['due_0_ms']:.1f} (worst {result['due_0_worst_ms']:.1f})")
    table.add_row("1,000", f"{result['due_1000_ms']:.0f} ({result['events_written']:,} events written)")
    return table
