"""Finds the system a command or the SDK talks to: as the environment says, else as a running `memoryos up` left it."""

from dataclasses import dataclass, field
from pathlib import Path

from memoryos_pipeline.embedded.directory import Connection, DataDirectory
from memoryos_pipeline.settings import Settings


class NotConnectedError(RuntimeError):
    """There is no system to talk to; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How the system is reached. Nothing secret shows in its printed form."""

    api_url: str
    api_key: str = field(repr=False)
    broker_url: str = field(repr=False)
    database_url: str = field(repr=False)
    owner_url: str = field(repr=False)
    ledger_url: str = field(repr=False)


def find_connection(settings: Settings, *, needs_key: bool = True) -> Reach:
    """Return how to reach the system. Raises NotConnectedError.

    Each of MEMORYOS_API_URL, _API_KEY, _BROKER_URL, _DATABASE_URL, _OWNER_URL and _LEDGER_URL wins when it is set;
    the others are read from the data directory of a running `memoryos up`. Who works on the database alone needs no
    key and is not refused for want of one: that is how the first one is minted.
    """
    directory = DataDirectory(settings.data_dir)
    running = _running(directory)
    named = settings.model_fields_set
    given = {
        "api_url": settings.api_url,
        "broker_url": settings.broker_url.get_secret_value(),
        "database_url": settings.database_url.get_secret_value(),
        "owner_url": settings.owner_url.get_secret_value(),
        "ledger_url": settings.ledger_url.get_secret_value(),
    }
    urls = {name: url if running is None or name in named else getattr(running, name) for name, url in given.items()}
    key = _key(settings, running, directory)
    if not key and (needs_key or "owner_url" not in named):
        instead = "MEMORYOS_API_URL and MEMORYOS_API_KEY" if needs_key else "MEMORYOS_OWNER_URL and MEMORYOS_LEDGER_URL"
        raise NotConnectedError(
            f"no running system found in {directory.root}: start `memoryos up` in another terminal, name its "
            f"directory with MEMORYOS_DATA_DIR, or set {instead}"
        )
    return Reach(api_key=key, **urls)


def _key(settings: Settings, running: Connection | None, directory: DataDirectory) -> str:
    if settings.api_key:
        return settings.api_key.get_secret_value()
    if running:
        return running.api_key
    return _text(directory.key_file).strip()


def _running(directory: DataDirectory) -> Connection | None:
    try:
        return directory.read_connection()
    except (OSError, ValueError, TypeError) as error:
        path = directory.connection_file
        raise NotConnectedError(f"{path} cannot be read ({type(error).__name__}); is it yours?") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
