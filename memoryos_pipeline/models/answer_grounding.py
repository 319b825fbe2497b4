"""What a statement must have from the turns it cites, to the letter: numbers, addresses and paths are never made up."""

import re
import unicodedata
from collections.abc import Iterable

_NUMBER = re.compile(r"\d{3,}")
"""Shorter ones may be a counting of the model's own: "two dogs" as "2 dogs"."""
_ADDRESS = re.compile(r"https?://\S+|[\w.+-]+@[\w-]+\.\w+|(?<![\w/])~?/[\w.-]+/\S+|\b[A-Za-z]:\\\S+")
_YEARS = range(1900, 2101)
"""A year is worked out from "two years ago" and stands for itself."""


def holds_what_nobody_said(content: str, said: Iterable[str]) -> bool:
    """Tell whether a text has a number of three digits or more, an address or a path that none of the turns has."""
    text = _plain(content)
    source = " ".join(map(_plain, said))
    numbers = set(_NUMBER.findall(_joined(source)))
    if any(number not in numbers and int(number) not in _YEARS for number in _NUMBER.findall(_joined(text))):
        return True
    return any(found.rstrip(".,;:!?)]}'\"。、") not in source for found in _ADDRESS.findall(text))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _joined(text: str) -> str:
    """Write 12,000 and 12 000 as 12000, however they are grouped."""
    return re.sub(r"(?<=\d)[, '\u00a0\u202f](?=\d{3}(?!\d))", "", text)
