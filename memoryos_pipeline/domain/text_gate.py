"""The one text gate: every string from outside passes here before it is hashed, stored, queued or sent.

What cannot be stored as it was sent is refused with the name of its field; nothing is repaired silently.
"""

import math
import re
import unicodedata
from typing import Any

from memoryos_pipeline.domain.errors import InvalidTurnError

MAX_TEXT_BYTES = 64 * 1024
"""The longest text of a turn, counted in bytes of UTF-8."""
MAX_ID_CHARACTERS = 256
STEPS = frozenset({".", ".."})
"""What clients and proxies take out of an address, written plainly or not."""
MAX_DEPTH = 32
MAX_KEYS = 256
MAX_PARTS = 256
BIGINT = range(-(2**63), 2**63)

BLANK_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Characters that show nothing although Unicode files them under letters, marks and symbols."""
NOT_IN_IDS = frozenset({"Cc", "Cs", "Zl", "Zp"})
PART_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
PLACEHOLDER_OF_PART = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}


def gate_text(value: object, field: str, *, max_bytes: int = MAX_TEXT_BYTES, blank_ok: bool = False) -> str:
    """Return `value` unchanged when it is text that can be stored. Raises InvalidTurnError naming `field`."""
    if not isinstance(value, str):
        raise InvalidTurnError(field, "must be text")
    size_bytes = _storable_bytes(value, field)
    if size_bytes > max_bytes:
        raise InvalidTurnError(field, f"has {size_bytes} bytes of UTF-8, the limit is {max_bytes}")
    if not blank_ok and is_blank(value):
        raise InvalidTurnError(field, "must not be blank")
    return value


def gate_id(value: object, field: str) -> str:
    """Return an id unchanged: 1 to 256 characters of any script, not blank, no control characters, no path step."""
    if not isinstance(value, str):
        raise InvalidTurnError(field, "must be text")
    if not 0 < len(value) <= MAX_ID_CHARACTERS:
        raise InvalidTurnError(field, f"must have 1 to {MAX_ID_CHARACTERS} characters")
    if value in STEPS:
        raise InvalidTurnError(field, "must not be a dot or two: no address can name it")
    if value.isascii() and value.isprintable() and not value.isspace():  # most ids are, and need no closer look
        return value
    _storable_bytes(value, field)
    if any(unicodedata.category(character) in NOT_IN_IDS for character in value):
        raise InvalidTurnError(field, "must not hold control characters or line breaks")
    if is_blank(value):
        raise InvalidTurnError(field, "must not be blank")
    return value


def gate_object(value: object, field: str) -> dict[str, Any]:
    """Return a JSON object unchanged: depth at most 32, at most 256 keys, finite numbers, storable strings."""
    if not isinstance(value, dict):
        raise InvalidTurnError(field, "must be an object")
    if value:
        _JsonGate(MAX_TEXT_BYTES).check(value, field, depth=1)
    return value


def flatten_content(value: object, field: str) -> tuple[str, list[Any] | None]:
    """Return the text of a turn's content, and the parts when it came as a list.

    Text parts are joined by line breaks; every other part leaves a placeholder such as `[image]`, because what a
    picture or a tool says is not what the speaker said.
    """
    if isinstance(value, str):
        return gate_text(value, field), None
    if not isinstance(value, list):
        raise InvalidTurnError(field, "must be text or a list of parts")
    if not 1 <= len(value) <= MAX_PARTS:
        raise InvalidTurnError(field, f"must have 1 to {MAX_PARTS} parts")
    pieces = [_text_of_part(part, f"{field}.{position}") for position, part in enumerate(value)]
    return gate_text("\n".join(pieces), field), value


def is_blank(text: str) -> bool:
    """Tell whether a reader would see nothing: spaces of any width, zero-width characters, fillers."""
    visible = text.strip()
    if visible[:1].isalnum() and visible[0] not in BLANK_LETTERS:
        return False
    return all(
        character in BLANK_LETTERS or unicodedata.category(character) in BLANK_CATEGORIES for character in visible
    )


def show_name(name: object) -> str:
    """Return a key or path as it may stand in an error: short, and always encodable."""
    return str(name)[:64].encode("utf-8", "replace").decode("utf-8")


def _storable_bytes(value: str, field: str) -> int:
    if "\0" in value:
        raise InvalidTurnError(field, "must not hold the NUL character")
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise InvalidTurnError(field, "must not hold a lone surrogate") from None


def _text_of_part(part: object, field: str) -> str:
    if isinstance(part, str):
        return gate_text(part, field, blank_ok=True)
    if not isinstance(part, dict):
        raise InvalidTurnError(field, "must be text or an object with a type")
    kind = part.get("type")
    if not isinstance(kind, str) or not PART_TYPE.fullmatch(kind):
        raise InvalidTurnError(f"{field}.type", "must be a short name such as text or image")
    _JsonGate(None).check(part, field, depth=1)
    if kind in TEXT_PARTS:
        return gate_text(part.get("text"), f"{field}.text", blank_ok=True)
    return f"[{PLACEHOLDER_OF_PART.get(kind, kind)}]"


class _JsonGate:
    """Walks one JSON value, counting its keys."""

    def __init__(self, max_bytes: int | None) -> None:
        self._keys = 0
        self._max_bytes = max_bytes

    def check(self, value: object, field: str, *, depth: int) -> None:
        if isinstance(value, str):
            self._check_string(value, field)
        elif isinstance(value, dict):
            self._check_object(value, field, depth=depth)
        elif isinstance(value, list):
            self._check_depth(field, depth)
            for position, item in enumerate(value):
                self.check(item, f"{field}.{position}", depth=depth + 1)
        else:
            _check_number(value, field)

    def _check_object(self, value: dict[Any, Any], field: str, *, depth: int) -> None:
        self._check_depth(field, depth)
        self._keys += len(value)
        if self._keys > MAX_KEYS:
            raise InvalidTurnError(field, f"has more than {MAX_KEYS} keys")
        for key, item in value.items():
            inner = f"{field}.{show_name(key)}"
            if not isinstance(key, str):
                raise InvalidTurnError(inner, "keys must be text")
            gate_text(key, inner, max_bytes=4 * MAX_ID_CHARACTERS, blank_ok=True)
            self.check(item, inner, depth=depth + 1)

    def _check_string(self, value: str, field: str) -> None:
        size_bytes = _storable_bytes(value, field)
        if self._max_bytes is not None and size_bytes > self._max_bytes:
            raise InvalidTurnError(field, f"has {size_bytes} bytes of UTF-8, the limit is {self._max_bytes}")

    @staticmethod
    def _check_depth(field: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InvalidTurnError(field[:256], f"is nested deeper than {MAX_DEPTH}")


def _check_number(value: object, field: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if value not in BIGINT:
            raise InvalidTurnError(field, "does not fit in 64 bits")
        return
    if not isinstance(value, float):
        raise InvalidTurnError(field, "is not a JSON value")
    if not math.isfinite(value):
        raise InvalidTurnError(field, "must be a finite number")
