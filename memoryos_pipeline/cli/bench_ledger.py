"""`memoryos bench ledger`: how much work a second workers can claim and complete, each row with its event."""

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.temporary import temporary_postgres
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.ledger import Ledger, complete_all
from memoryos_pipeline.store.synthetic_ledger import event_of, fill_ledger, ledger_ids, ledger_outcome
from memoryos_pipeline.store.tenants import create_tenant

KIND = "bench"
BATCHED, ALONE = "row", "alone"
"""What subjects begin with: rows that may be done together, and rows that are done one by one."""
WORKERS = 2
THREADS = 4
BYSTANDER_READY, BYSTANDER_DONE = 20_000, 50_000
ALONE_SHARE = 10


def ledger(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    rows: Annotated[int, typer.Option(help="Rows to claim and complete.", min=1_000)] = 20_000,
) -> None:
    """Time two worker processes that claim rows of two tenants and complete them, another tenant's rows beside them."""
    with temporary_postgres() as server:
        result = _measure(server, rows)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(_table(result))


def _measure(server: EmbeddedPostgres, rows: int) -> dict[str, Any]:
    owner, app = Database(server.url("owner"), pool_size=1), Database(server.url("app"), pool_size=1)
    try:
        tenants = [_tenant(owner, name) for name in ("one", "two", "bystander")]
        fill_ledger(app, tenants[2], KIND, prefix=BATCHED, ready=BYSTANDER_READY, done=BYSTANDER_DONE)
        together = _run(server, app, tenants[:2], rows // 2, BATCHED)
        alone = _run(server, app, tenants[:2], rows // 2 // ALONE_SHARE, ALONE)
    finally:
        owner.dispose()
        app.dispose()
    return {
        "claims_per_s": together["per_s"],
        "claims_per_s_one_by_one": alone["per_s"],
        "rows": together["rows"],
        "seconds": together["seconds"],
        "events": together["events"],
        "rows_a_message": Settings().relay_batch,
        "workers": WORKERS,
        "threads": THREADS,
        "tenants": 2,
        "bystander_rows": BYSTANDER_READY + BYSTANDER_DONE,
        "load": round(os.getloadavg()[0], 2),
    }


def _tenant(owner: Database, name: str) -> UUID:
    tenant_id = mint_id()
    create_tenant(owner, tenant_id, name)
    return tenant_id


def _run(
    server: EmbeddedPostgres, app: Database, tenants: Sequence[UUID], rows_each: int, prefix: str
) -> dict[str, Any]:
    """Do rows of every tenant; unless all are done by one execution, with an event each, the time does not count."""
    for tenant_id in tenants:
        fill_ledger(app, tenant_id, KIND, prefix=prefix, ready=rows_each)
    dealt = zip(*(ledger_ids(app, tenant_id, KIND, prefix=prefix) for tenant_id in tenants), strict=True)
    ids = [work_id for turn in dealt for work_id in turn]  # tenants take turns, as the relay lets them
    seconds = _work(server, ids)
    outcomes = [ledger_outcome(app, tenant_id, KIND, prefix=prefix) for tenant_id in tenants]
    done, events = (sum(counted) for counted in zip(*outcomes, strict=True))
    if not done == events == len(ids):
        raise RuntimeError(f"of {len(ids)} rows {done} are done, with {events} events")
    return {"rows": done, "events": events, "seconds": round(seconds, 3), "per_s": round(done / seconds, 1)}


def _work(server: EmbeddedPostgres, ids: Sequence[int]) -> float:
    """Let worker processes do the rows, message by message; return the seconds from the first start to the last end."""
    size = Settings().relay_batch
    messages = [list(ids[start : start + size]) for start in range(0, len(ids), size)]
    urls = (server.url("app"), server.url("ledger"))
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        ready = manager.Barrier(WORKERS)
        parts = [pool.submit(_work_here, urls, messages[n::WORKERS], ready) for n in range(WORKERS)]
        spans = [part.result() for part in parts]
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _work_here(urls: tuple[str, str], messages: list[list[int]], ready: Any) -> tuple[float, float]:
    """Be a worker: the envelope of the workers over a stage that only completes. Return when it began and ended."""
    from memoryos_pipeline import pipeline  # noqa: PLC0415 - in the worker's process only
    from workers.envelope import deliver  # noqa: PLC0415

    pipeline.STAGES[KIND] = lambda parts, lease: _finish(parts, [lease])
    pipeline.BATCHES[KIND, BATCHED] = _finish
    with _runtime(*urls):
        deliver([])
        ready.wait()
        began = time.monotonic()
        threads = [threading.Thread(target=_deliver, args=(deliver, messages[n::THREADS])) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return began, time.monotonic()


def _deliver(deliver: Any, messages: Sequence[list[int]]) -> None:
    for message in messages:
        deliver(message)


def _finish(parts: Parts, leases: Sequence[Lease]) -> None:
    """Complete rows of one tenant with an event each: what every stage does at its end."""
    told = event_of(leases[0].subject_key.partition(":")[0])
    events = [Event(told, lease.scope_id, work_id=lease.work_id) for lease in leases]
    with parts.database.transaction(leases[0].tenant_id) as connection:
        record_events(connection, leases[0].tenant_id, events)
        complete_all(connection, leases)


@dataclass(frozen=True)
class _NoModel:
    """Stands where a model would: no row of this bench asks one."""

    name: str = "none"


@contextmanager
def _runtime(app_url: str, ledger_url: str) -> Iterator[None]:
    from workers import runtime  # noqa: PLC0415

    settings = Settings()
    app, own = (Database(url, pool_size=THREADS, ping=ping) for url, ping in ((app_url, False), (ledger_url, True)))
    keeper = runtime.LeaseKeeper(Ledger(own), own, process=f"worker@bench:{os.getpid()}", lease_seconds=60)
    parts = Parts(app, _NoModel(), _NoModel())  # type: ignore[arg-type]
    runtime._runtime[:] = [
        runtime.Runtime(os.getpid(), f"bench:{os.getpid()}", settings, parts, Ledger(own), own, keeper)
    ]
    try:
        yield
    finally:
        keeper.stop()
        runtime.forget_runtime()
        app.dispose()
        own.dispose()


@dataclass(frozen=True)
class _Line:
    name: str
    key: str
    form: str


LINES = (
    _Line("claim + complete a second, rows of a message together", "claims_per_s", "{:.0f}"),
    _Line("claim + complete a second, a transaction a row", "claims_per_s_one_by_one", "{:.0f}"),
    _Line("rows, each with an event", "rows", "{}"),
    _Line("rows of another tenant beside them", "bystander_rows", "{}"),
    _Line("load of the machine", "load", "{}"),
)


def _table(result: dict[str, Any]) -> Table:
    table = Table(f"{WORKERS} workers of {THREADS} threads", "")
    for line in LINES:
        table.add_row(line.name, line.form.format(result[line.key]))
    return table
