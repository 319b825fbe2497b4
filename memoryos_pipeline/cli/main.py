"""The `memoryos` command: one Typer application, one function a verb."""

import sys

import typer

from memoryos_pipeline.cli.ask import context, search
from memoryos_pipeline.cli.chat import chat
from memoryos_pipeline.cli.demo import demo
from memoryos_pipeline.cli.processes import api, beat, migrate, relay, worker
from memoryos_pipeline.cli.up import up
from memoryos_pipeline.settings import SettingsError

app = typer.Typer(
    name="memoryos", help="Long-term memory for LLM agents, as a pipeline you can audit.", no_args_is_help=True
)
for command in (up, demo, search, context, chat, migrate, api, worker, relay, beat):
    app.command()(command)


def main() -> None:
    """Run the command; a setting that cannot be used ends it with a sentence, not a traceback."""
    try:
        app()
    except SettingsError as error:
        sys.stderr.write(f"memoryos: {error}\n")
        raise SystemExit(2) from None
