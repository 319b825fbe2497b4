"""Opaque cursors: where a listing stopped, written so that nobody is tempted to make one up."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memoryos_pipeline.domain.errors import InvalidTurnError

Parser = Callable[[str], Any]
MAX_CURSOR_CHARACTERS = 2048


def bigint(text: str) -> int:
    """Read a number that fits in 64 bits. Raises ValueError."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def moment(text: str) -> datetime:
    """Read an aware date and time. Raises ValueError."""
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError
    return value


def identifier(text: str) -> UUID:
    """Read an id. Raises ValueError."""
    return UUID(text)


def words(text: str) -> str:
    """Read text that can be stored. Raises ValueError."""
    if "\0" in text:
        raise ValueError
    text.encode()
    return text


class InvalidCursorError(InvalidTurnError):
    """A cursor is not one that this listing gave out."""

    def __init__(self) -> None:
        super().__init__("cursor", "is not one that this listing gave out")


def write_cursor(listing: str, row: Mapping[str, Any], order: Sequence[str]) -> str:
    """Return the cursor that stands right behind `row`."""
    values = [row[name].isoformat() if isinstance(row[name], datetime) else str(row[name]) for name in order]
    packed = json.dumps([listing, *values], ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(listing: str, cursor: str, parsers: Sequence[Parser]) -> list[Any]:
    """Return the values a cursor holds, in the order of the listing. Raises InvalidCursorError."""
    if len(cursor) > MAX_CURSOR_CHARACTERS:
        raise InvalidCursorError
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        name, *parsed = [parse(value) for parse, value in zip((words, *parsers), values, strict=True)]
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError):
        raise InvalidCursorError from None
    if name != listing:
        raise InvalidCursorError
    return parsed
