"""Connections and the unit of work: one transaction, one tenant, one commit.

Nobody else commits. A transaction is never held while a model or the network is waited for.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

T = TypeVar("T")

PASSING = ("08", "53", "57P", "40001", "40P01")
"""Beginnings of SQLSTATE: no connection, out of resources, shutting down or starting, serialization, deadlock."""
LOST_TO_OTHERS = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock and lock timeout: all was rolled back, and trying again can succeed."""
SET_TENANT = text("select set_config('app.tenant', :tenant_id, true)")


def driver_url(url: str) -> str:
    """Return `url` with the psycopg driver named, however the user wrote it."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.split("+")[0] not in {"postgresql", "postgres"}:
        message = "a database URL starts with postgresql://"
        raise ValueError(message)
    return f"postgresql+psycopg://{rest}"


def sqlstate_of(error: BaseException) -> str | None:
    """Return the code under which Postgres reported an error; None when it is not from Postgres."""
    state: str | None = getattr(getattr(error, "orig", None), "sqlstate", None)
    return state


def is_passing(error: BaseException) -> bool:
    """Tell whether an error is about the database or about others who use it, not about what it was asked.

    A connection lost without a word is none: what was asked may have ended the server.
    """
    return isinstance(error, PoolTimeoutError) or (sqlstate_of(error) or "").startswith(PASSING)


def try_again(transaction: Callable[[], T], *, tries: int = 5) -> T:
    """Run a whole transaction, and again when others were in its way. Raises what the last try raised."""
    for _ in range(tries - 1):
        try:
            return transaction()
        except DBAPIError as error:
            if sqlstate_of(error) not in LOST_TO_OTHERS:
                raise
    return transaction()


def _speak_utc(connection: psycopg.Connection[Any], _: object) -> None:
    """Read moments the same way wherever a process runs and whatever the server was set to."""
    connection.autocommit = True
    connection.execute("set time zone 'UTC'")
    connection.autocommit = False


class Database:
    """One role's pool of connections. Belongs to the process that made it (raises after a fork)."""

    def __init__(self, url: str, *, pool_size: int = 8, application_name: str = "memoryos", ping: bool = False) -> None:
        self._pid = os.getpid()
        self.engine: Engine = create_engine(
            driver_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            pool_pre_ping=ping,
            hide_parameters=True,  # an error must not carry what people said
            connect_args={"application_name": application_name, "connect_timeout": 5},
        )
        event.listen(self.engine, "connect", _speak_utc)

    @contextmanager
    def transaction(self, tenant_id: UUID) -> Iterator[Connection]:
        """Open the unit of work of one tenant: commits at the end, rolls back on any error."""
        with self.across_tenants() as connection:
            connection.execute(SET_TENANT, {"tenant_id": str(tenant_id)})
            yield connection

    @contextmanager
    def snapshot(self, tenant_id: UUID) -> Iterator[Connection]:
        """Open a read-only transaction of one tenant in which every statement sees the same moment."""
        self._refuse_after_fork()
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self.engine.execution_options(**options).begin() as connection:
            connection.execute(SET_TENANT, {"tenant_id": str(tenant_id)})
            yield connection

    @contextmanager
    def across_tenants(self) -> Iterator[Connection]:
        """Open a transaction without a tenant: the app role sees no tenant rows, the ledger role sees work."""
        self._refuse_after_fork()
        with self.engine.begin() as connection:
            yield connection

    def _refuse_after_fork(self) -> None:
        if os.getpid() != self._pid:
            message = "this pool was opened before a fork; open one per process"
            raise RuntimeError(message)

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()
