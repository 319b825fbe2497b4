"""What every command says the same way."""

from typing import NoReturn

import typer
from rich.console import Console


def end_with(console: Console, sentence: str) -> NoReturn:
    """End the command with status 1 and a sentence instead of a traceback."""
    console.print(f"memoryos: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)
