"""`memoryos bench`: what the API costs on top of the statements it runs, measured on this machine."""

import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.bench_load import Load, Measured, run_http, run_sql
from memoryos_pipeline.embedded.first_run import TENANT_ID, TENANT_NAME
from memoryos_pipeline.embedded.plan import memoryos_command
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.readiness import responds
from memoryos_pipeline.embedded.temporary import temporary_postgres
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import create_tenant, mint_key

SIZES = {"single": 1, "batch": 100}
START_SECONDS = 60.0
WARM_UP_SECONDS = 0.5

bench = typer.Typer(name="bench", help="Measure this machine.", no_args_is_help=True)


@bench.callback()
def _group() -> None:
    """Measure this machine."""


@bench.command()
def ingest(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    seconds: Annotated[float, typer.Option(help="Length of each run.", min=0.2)] = 3.0,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; the best of each side counts.", min=1)] = 3,
) -> None:
    """Compare ingest over HTTP with the same SQL statements, single turns and batches of 100."""
    with system() as where:
        result = measure(where, seconds=seconds, rounds=rounds)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(_table(result))


@dataclass(frozen=True)
class Where:
    """The system under measurement."""

    api_url: str
    api_key: str
    database_url: str
    tenant_id: UUID


@contextmanager
def system() -> Iterator[Where]:
    """Run Postgres (fsync on) and one API process in a temporary directory, and leave nothing behind."""
    with temporary_postgres() as server, _api(server) as where:
        yield where


@contextmanager
def _api(server: EmbeddedPostgres) -> Iterator[Where]:
    owner = Database(server.url("owner"), pool_size=1)
    create_tenant(owner, TENANT_ID, TENANT_NAME)
    key = mint_key(owner, TENANT_ID, label="bench", scopes=("ingest",))
    owner.dispose()
    port = free_port()
    where = Where(f"http://127.0.0.1:{port}", key, server.url("app"), TENANT_ID)
    environment = {
        **os.environ,
        "MEMORYOS_DATABASE_URL": where.database_url,
        "MEMORYOS_API_HOST": "127.0.0.1",
        "MEMORYOS_API_PORT": str(port),
        "MEMORYOS_EMBEDDER": "hashing",
        "MEMORYOS_LANGUAGE_MODEL": "extractive",
    }
    with (server.paths.root / "api.log").open("wb") as log:
        command = [*memoryos_command(), "api"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_until_ready(where, process)
        yield where
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(where: Where, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not responds(f"{where.api_url}/readyz"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the API did not start")
        time.sleep(0.05)


def measure(where: Where, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Run both sides in turn and return ratios, turns a second, and milliseconds a request."""
    best: dict[str, Measured] = {}
    for number in range(-1, rounds):  # round -1 warms up and does not count
        for size, turns in SIZES.items():
            for side, run in (("http", run_http), ("sql", run_sql)):
                target = where.api_url if side == "http" else where.database_url
                length = seconds if number >= 0 else min(seconds, WARM_UP_SECONDS)
                name = f"{size}-{side}-{number}"
                measured = _in_own_process(run, Load(name, turns, length, target, where.tenant_id, where.api_key))
                key = f"{size}_{side}"
                if number >= 0 and (key not in best or measured.turns_per_second > best[key].turns_per_second):
                    best[key] = measured
    return _result(best)


def _in_own_process(run: Callable[[Load], Measured], load: Load) -> Measured:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(run, load).result()


def _result(best: dict[str, Measured]) -> dict[str, Any]:
    ratios = {
        f"{size}_ratio": round(best[f"{size}_http"].turns_per_second / best[f"{size}_sql"].turns_per_second, 3)
        for size in SIZES
    }
    figures = {
        f"{key}_{name}": round(value, 2) for key, measured in best.items() for name, value in asdict(measured).items()
    }
    return {**ratios, **figures}


def _table(result: dict[str, Any]) -> Table:
    table = Table("", "turns/s HTTP", "turns/s SQL", "ratio", "HTTP p50 / p99 ms", "SQL p50 / p99 ms")
    for size, turns in SIZES.items():
        http, sql = ({name: result[f"{size}_{side}_{name}"] for name in FIGURES} for side in ("http", "sql"))
        table.add_row(
            f"{turns} a request",
            f"{http['turns_per_second']:.0f}",
            f"{sql['turns_per_second']:.0f}",
            f"{result[f'{size}_ratio']:.2f}",
            f"{http['p50_ms']:.1f} / {http['p99_ms']:.1f}",
            f"{sql['p50_ms']:.1f} / {sql['p99_ms']:.1f}",
        )
    return table


FIGURES = ("turns_per_second", "p50_ms", "p99_ms")
