"""`memoryos up`: the whole system in the foreground until Ctrl-C, its data kept in a data directory."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.embedded.directory import Connection
from memoryos_pipeline.settings import load_settings

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where data is kept; by default MEMORYOS_DATA_DIR.")]


def up(data_dir: DataDir = None) -> None:
    """Run Postgres, Valkey, the API, workers, beat, relay and Flower until Ctrl-C."""
    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415 - an optional extra
    from memoryos_pipeline.embedded.supervisor import run  # noqa: PLC0415

    settings = load_settings()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir})
    console = Console(stderr=True)
    console.print(f"Starting in {settings.data_dir} …", highlight=False)
    try:
        run(settings, ready=lambda connection: show_urls(console, connection), tell=console.print)
    except EmbeddedServerError as error:
        console.print(f"memoryos: {error}", style="red", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None


def show_urls(console: Console, connection: Connection) -> None:
    """Print where people look; secrets stay in the data directory."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("API", connection.api_url)
    table.add_row("API docs", f"{connection.api_url}/docs")
    table.add_row("Flower", connection.flower_url)
    table.add_row("", f"user {connection.flower_user}, password in the data directory: flower_password")
    table.add_row("API key", "in the data directory: api_key (the memoryos command finds it by itself)")
    console.print(table)
    console.print("Ctrl-C stops everything.")
