"""Statements people write themselves: sessions that see one tenant, begin in the read models and write nothing."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import psycopg


@dataclass(frozen=True, slots=True)
class Rows:
    """What one statement returned."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def reading_url(database_url: str, tenant_id: UUID) -> str:
    """Return the URL of the application role for psql and its like, in the terms libpq understands."""
    options = f"-c app.tenant={tenant_id} -c search_path=memory_v1 -c default_transaction_read_only=on"
    _, _, rest = database_url.partition("://")
    return f"postgresql://{rest}{'&' if '?' in rest else '?'}options={quote(options)}"


def read_rows(url: str, statements: str) -> list[Rows]:
    """Run statements in one session and return the rows of each that has any. Raises psycopg.Error."""
    with psycopg.connect(url, connect_timeout=5, application_name="memoryos-sql") as connection:
        cursor = connection.execute(statements)
        found = []
        while True:
            if cursor.description is not None:
                found.append(Rows([column.name for column in cursor.description], cursor.fetchall()))
            if not cursor.nextset():
                return found
