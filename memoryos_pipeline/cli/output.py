"""What every command says the same way."""

import re
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError

NO_SCHEMA = ("3F000", "42P01", "42703")
"""SQLSTATE of a schema, table or column that does not exist."""
MISSING_EXTENSION = re.compile(r'extension "(?P<name>\w+)" is not available')


def end_with(console: Console, sentence: str) -> NoReturn:
    """End the command with status 1 and a sentence instead of a traceback."""
    console.print(f"memoryos: {sentence}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def database_trouble(error: "SQLAlchemyError") -> str:
    """Return in a sentence why the database cannot be used; no URL and no password is in it."""
    cause = getattr(error, "orig", None)
    if getattr(cause, "sqlstate", None) in NO_SCHEMA:
        return "the schema is missing or older than this code; run `memoryos migrate`"
    if missing := MISSING_EXTENSION.search(str(cause)):
        name = missing["name"]
        hint = " (pgvector; packages call it postgresql-18-pgvector or the like)" if name == "vector" else ""
        return f"the server has no extension {name}{hint}; install it there, then run `memoryos migrate`"
    reason = str(cause or type(error).__name__).strip().splitlines()[0]
    return f"the database cannot be used: {reason}"
