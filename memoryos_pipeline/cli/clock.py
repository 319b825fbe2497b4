"""`memoryos clock`: where recorded time stands, and how a simulation ends."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.store.database import Database

# What opens a database is imported where it is opened: other commands start without it.


class ForwardClock:
    """Recorded time, held by the owner; a simulation that is taken up again never moves it back."""

    def __init__(self, owner: "Database") -> None:
        from memoryos_pipeline.store.clock import read_frozen  # noqa: PLC0415

        self._owner = owner
        with owner.across_tenants() as connection:
            self.held_at = read_frozen(connection)

    def hold(self, moment: datetime) -> None:
        """Hold recorded time at `moment`, or leave it where it is held when that is later."""
        self._set(max(moment, self.held_at or moment))

    def release(self) -> None:
        """Let recorded time run again."""
        self._set(None)

    def _set(self, moment: datetime | None) -> None:
        from memoryos_pipeline.store.clock import freeze_clock  # noqa: PLC0415

        with self._owner.across_tenants() as connection:
            freeze_clock(connection, moment)
        self.held_at = moment


def clock(
    release: Annotated[bool, typer.Option("--release", help="Let recorded time run again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line.")] = False,
) -> None:
    """Say whether recorded time runs or is held by `ingest --as-lived`, and let it run again."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    console = Console(stderr=True)
    try:
        held_at = _clock(release=release)
    except NotConnectedError as error:
        end_with(console, str(error))
    except SQLAlchemyError as error:
        end_with(console, f"the database does not answer the owner role ({type(error).__name__})")
    if as_json:
        typer.echo(json.dumps({"held_at": held_at.isoformat() if held_at else None}))
    else:
        typer.echo(f"recorded time is held at {held_at.isoformat()}" if held_at else "recorded time runs")


def _clock(*, release: bool) -> datetime | None:
    from memoryos_pipeline.store.database import Database  # noqa: PLC0415

    owner = Database(
        find_connection(load_settings(), needs_key=False).owner_url, pool_size=1, application_name="memoryos-owner"
    )
    try:
        held = ForwardClock(owner)
        if release:
            held.release()
        return held.held_at
    finally:
        owner.dispose()
