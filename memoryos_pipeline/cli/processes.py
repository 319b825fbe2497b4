"""Commands that are one long-lived process each: api, worker, relay, beat; and migrate."""

import os
import signal
import socket
import threading
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from memoryos_pipeline.cli.output import database_trouble, end_with
from memoryos_pipeline.embedded.ports import listening_trouble
from memoryos_pipeline.observability import configure_logging
from memoryos_pipeline.settings import QUEUES, Settings, load_settings

# Each command imports what it needs when it runs: a command starts in tenths of a second, and a worker's
# parent process must not load models or open connections before it forks.


class Pool(StrEnum):
    """The Celery pools a worker may use."""

    THREADS = "threads"
    PREFORK = "prefork"
    SOLO = "solo"


def migrate() -> None:
    """Bring the database to the newest schema."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from memoryos_pipeline.pipeline import build_owner  # noqa: PLC0415
    from memoryos_pipeline.store.migrate import migrate as run  # noqa: PLC0415

    owner = build_owner(load_settings())
    try:
        run(owner)
    except SQLAlchemyError as error:
        end_with(Console(stderr=True), database_trouble(error))
    finally:
        owner.dispose()
    typer.echo("the schema is up to date")


def api() -> None:
    """Serve the HTTP API until SIGTERM."""
    from memoryos_pipeline.api.serve import serve  # noqa: PLC0415

    settings = load_settings()
    if trouble := listening_trouble(settings.api_host, settings.api_port):
        # The supervisor reads these words in the log, and chooses another port when it may.
        end_with(Console(stderr=True), f"cannot listen on {settings.api_host}:{settings.api_port}: {trouble}")
    _require_room(settings, settings.api_connections)
    serve(settings)


def worker(
    queues: Annotated[str, typer.Option(help="Queues to serve, by comma.")] = ",".join(QUEUES),
    pool: Annotated[Pool, typer.Option(help="Celery pool.")] = Pool.THREADS,
    concurrency: Annotated[int, typer.Option(min=1, help="Tasks at once.")] = 2,
) -> None:
    """Serve some queues until SIGTERM: running work is finished, the rest is handed back."""
    from workers.celery_app import WORKER_ARGUMENTS, app  # noqa: PLC0415

    if unknown := sorted(set(queues.split(",")) - set(QUEUES)):
        end_with(Console(stderr=True), f"there is no queue {unknown[0]!r}; there are {', '.join(QUEUES)}")
    settings = load_settings()
    children = concurrency if pool is Pool.PREFORK else 1
    _require_room(settings, children * settings.worker_connections)
    name = f"{queues.replace(',', '-')[:60]}.{os.getpid()}@{socket.gethostname()}"
    options = [f"--queues={queues}", f"--pool={pool}", f"--concurrency={concurrency}", f"--hostname={name}"]
    app.worker_main(["worker", *options, "--events", "--loglevel=INFO", *WORKER_ARGUMENTS])


def beat() -> None:
    """Ring for the sweeps until SIGTERM."""
    from workers.celery_app import app  # noqa: PLC0415
    from workers.schedule import install_schedule  # noqa: PLC0415

    install_schedule(app, load_settings())
    app.Beat(loglevel="INFO", quiet=True, pidfile=None).run()


def relay() -> None:
    """Ring the doorbell for due work until SIGTERM."""
    from redis import Redis  # noqa: PLC0415

    from memoryos_pipeline.pipeline import build_ledger_database  # noqa: PLC0415
    from workers.celery_app import app  # noqa: PLC0415
    from workers.relay import Relay, celery_publisher  # noqa: PLC0415

    settings = load_settings()
    configure_logging(settings.log_level)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    broker = Redis.from_url(settings.broker_url.get_secret_value(), socket_timeout=5, socket_connect_timeout=3)
    name = f"relay@{socket.gethostname()}:{os.getpid()}"
    Relay(build_ledger_database(settings), broker, celery_publisher(app), settings, name=name).run(stopped)


def _require_room(settings: Settings, wanted: int) -> None:
    """End when the database can never give this process the connections it may open; warn when it cannot now.

    A database that does not answer is waited for later, by whoever needs it. Nothing is left open: workers fork.
    """
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from memoryos_pipeline.pipeline import build_ledger_database  # noqa: PLC0415
    from memoryos_pipeline.store.durability import read_room  # noqa: PLC0415

    ledger = build_ledger_database(settings, pool_size=1)
    try:
        with ledger.across_tenants() as connection:
            room = read_room(connection)
    except SQLAlchemyError:
        return
    finally:
        ledger.dispose()
    console = Console(stderr=True)
    if trouble := room.trouble(wanted):
        if wanted > room.most:
            end_with(console, trouble)
        console.print(f"memoryos: {trouble}", style="yellow", markup=False, highlight=False, soft_wrap=True)
