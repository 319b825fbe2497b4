"""`memoryos env`: what a shell needs so that curl, the SDK and every command reach the running system."""

import json
import shlex
from typing import Annotated

import typer
from rich.console import Console

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings


def env(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of shell.")] = False,
) -> None:
    """Print MEMORYOS_API_URL, _API_KEY and _DATA_DIR for a shell: eval "$(memoryos env)"."""
    try:
        settings = load_settings()
        reach = find_connection(settings)
    except NotConnectedError as error:
        end_with(Console(stderr=True), str(error))
    variables = {
        "MEMORYOS_API_URL": reach.api_url,
        "MEMORYOS_API_KEY": reach.api_key,
        "MEMORYOS_DATA_DIR": str(settings.data_dir.expanduser().resolve()),
    }
    if as_json:
        typer.echo(json.dumps(variables, ensure_ascii=False))
        return
    for name, value in variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
