"""What a call may cost a tenant, in tokens. Pure."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

CHARACTERS_A_TOKEN = 3.0
TOKENS_A_WIDE_CHARACTER = 1.5
"""Letters beyond ASCII cost more than one token at worst; most of Japanese, Korean and Chinese costs about one."""


@dataclass(slots=True)
class Payment:
    """What a call cost, in tokens; whoever makes the call fills it in when the provider has said so."""

    tokens: int | None = None


def tokens_at_most(text: str, *, output_tokens: int) -> int:
    """Return what a request may cost at most: its text in any language, and the longest answer it allows."""
    plain = sum(character.isascii() for character in text)
    wide = len(text) - plain
    return math.ceil(plain / CHARACTERS_A_TOKEN + wide * TOKENS_A_WIDE_CHARACTER) + output_tokens


def fits(asked: int, *, spent: int, reserved: int, cap: int | None) -> bool:
    """Tell whether a call fits beside what the day has cost and what calls under way may still cost."""
    return cap is None or spent + reserved + asked <= cap


def seconds_until_next_day(now: datetime) -> float:
    """Return how long a spent budget stays spent: days are those of UTC; `now` is aware."""
    here = now.astimezone(UTC)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (midnight - here).total_seconds()
