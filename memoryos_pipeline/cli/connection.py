"""Finds the API and the key: what the environment says, else what `memoryos up` left in its data directory."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryos_pipeline.settings import Settings

CONNECTION_FILE = "connection.json"


class NotConnectedError(RuntimeError):
    """There is no API key to work with; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command sends what it has to say. The key is kept out of its printed form."""

    api_url: str
    api_key: str = field(repr=False)


def find_connection(settings: Settings) -> Connection:
    """Return the API and key to use. Raises NotConnectedError.

    MEMORYOS_API_URL and MEMORYOS_API_KEY win; either that is not set is read from `connection.json`.
    """
    path = settings.data_dir / CONNECTION_FILE
    left = _read(path)
    named = "api_url" in settings.model_fields_set
    url = settings.api_url if named else str(left.get("api_url") or settings.api_url)
    key = settings.api_key.get_secret_value() if settings.api_key else left.get("api_key")
    if not key:
        raise NotConnectedError(
            f"no API key: start `memoryos up` (it leaves one in {path}), name its directory with "
            "MEMORYOS_DATA_DIR, or set MEMORYOS_API_URL and MEMORYOS_API_KEY"
        )
    return Connection(url, str(key))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise NotConnectedError(f"{path} cannot be read: {type(error).__name__}") from None
    return found if isinstance(found, dict) else {}
