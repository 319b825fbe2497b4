"""`memoryos sql`: the read models by SQL, as one tenant and without writing."""

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.output import database_trouble, end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.store.reading_sql import Rows


def sql(
    statement: Annotated[
        str | None, typer.Argument(help="What to read, e.g. 'select * from knowledge'; else standard input.")
    ] = None,
    url: Annotated[
        bool,
        typer.Option("--url", help="Print the URL that reads alike, for psql and its like; it holds a password."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line a statement.")] = False,
) -> None:
    """Read the views of schema memory_v1 as the tenant of the API key; nothing is written."""
    from psycopg import Error  # noqa: PLC0415 - other commands start without

    from memoryos_pipeline.store.reading_sql import read_rows  # noqa: PLC0415

    console = Console(stderr=True)
    reading = _reading_url(console)
    if url:
        typer.echo(reading)
        return
    try:
        found = read_rows(reading, statement if statement is not None else sys.stdin.read())
    except Error as error:
        end_with(console, str(error).strip() or type(error).__name__)
    for rows in found:
        _show(rows, as_json=as_json)


def _reading_url(console: Console) -> str:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from memoryos_pipeline.domain.errors import UnknownKeyError  # noqa: PLC0415
    from memoryos_pipeline.store.database import Database  # noqa: PLC0415
    from memoryos_pipeline.store.reading_sql import reading_url  # noqa: PLC0415
    from memoryos_pipeline.store.tenants import authenticate  # noqa: PLC0415

    try:
        reach = find_connection(load_settings())
        app = Database(reach.database_url, pool_size=1, application_name="memoryos-sql")
        try:
            return reading_url(reach.database_url, authenticate(app, reach.api_key).tenant_id)
        finally:
            app.dispose()
    except NotConnectedError as error:
        end_with(console, str(error))
    except UnknownKeyError:
        end_with(console, "this database does not know the API key")
    except SQLAlchemyError as error:
        end_with(console, database_trouble(error))


def _show(rows: "Rows", *, as_json: bool) -> None:
    if as_json:
        named = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]
        typer.echo(json.dumps({"rows": named}, ensure_ascii=False, default=_text))
        return
    table = Table(*(escape(name) for name in rows.columns))
    for row in rows.rows:
        table.add_row(*(escape("" if value is None else _text(value)) for value in row))
    Console().print(table)
    typer.echo(f"{len(rows.rows)} rows" if len(rows.rows) != 1 else "1 row")


def _text(value: Any) -> str:
    return value.isoformat(" ", "seconds") if isinstance(value, datetime) else str(value)
