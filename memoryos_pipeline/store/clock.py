"""The one way to read time, and the owner's way to set it."""

from datetime import datetime

from sqlalchemy import Connection, text

NOW = text("select memoryos.now()")
FROZEN = text("select frozen_at from memoryos.clock")


def read_now(connection: Connection) -> datetime:
    """Return recorded time (aware, UTC): the wall clock, or the moment the owner froze it at."""
    now: datetime = connection.execute(NOW).scalar_one()
    return now


def read_frozen(connection: Connection) -> datetime | None:
    """Return the moment recorded time is held at, or None when it runs."""
    frozen: datetime | None = connection.execute(FROZEN).scalar_one()
    return frozen


def freeze_clock(connection: Connection, at: datetime | None) -> None:
    """Hold recorded time at `at`, or let it run again with None. Only the owner role may."""
    connection.execute(text("update memoryos.clock set frozen_at = :at"), {"at": at})
