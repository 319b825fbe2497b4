"""`memoryos up`: the whole system in the foreground until Ctrl-C, its data kept in a data directory."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from memoryos_pipeline.cli.output import database_trouble, end_with
from memoryos_pipeline.embedded.directory import Connection
from memoryos_pipeline.settings import Settings, load_settings

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where data is kept; by default MEMORYOS_DATA_DIR.")]


def up(data_dir: DataDir = None) -> None:
    """Run Postgres, Valkey, the API, workers, beat, relay and Flower until Ctrl-C."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - other commands start without

    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415 - an optional extra
    from memoryos_pipeline.embedded.supervisor import run  # noqa: PLC0415

    settings = load_settings()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir.expanduser().resolve()})
    console = Console(stderr=True)
    console.print(f"Starting in {settings.data_dir} …", highlight=False, soft_wrap=True)
    try:
        run(settings, ready=lambda connection: show_urls(console, connection, settings), tell=console.print)
    except EmbeddedServerError as error:
        end_with(console, str(error))
    except SQLAlchemyError as error:
        end_with(console, database_trouble(error))


def show_urls(console: Console, connection: Connection, settings: Settings) -> None:
    """Print where people look and how another shell gets there; secrets stay in the data directory."""
    password = settings.data_dir / "flower_password"
    for name, value in (
        ("API", connection.api_url),
        ("API docs", f"{connection.api_url}/docs"),
        ("Flower", f"{connection.flower_url}  (user {connection.flower_user}, password in {password})"),
        ("Shell", f'eval "$({_env_command(settings)})" lets curl, the SDK and every command reach it'),
    ):
        console.print(f"{name:<9} {value}", highlight=False, markup=False, soft_wrap=True)
    console.print("Ctrl-C stops everything.")


def _env_command(settings: Settings) -> str:
    """Return how `memoryos env` finds this very system from a shell that knows nothing of it."""
    program = sys.argv[0] if sys.argv[0].endswith("memoryos") else "memoryos"
    if settings.data_dir == Settings.model_fields["data_dir"].get_default(call_default_factory=True):
        return f"{shlex.quote(program)} env"
    return f"MEMORYOS_DATA_DIR={shlex.quote(str(settings.data_dir))} {shlex.quote(program)} env"
