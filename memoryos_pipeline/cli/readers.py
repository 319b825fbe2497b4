"""Files into turn bodies: JSON lines as they stand, and LoCoMo dialogues with their session dates."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memoryos_pipeline.domain.errors import InvalidTurnError
from memoryos_pipeline.domain.turn_body import parse_turn

TurnBody = dict[str, Any]

LOCOMO_AGENT = "locomo"
SECONDS_BETWEEN_TURNS = 30
SESSION = re.compile(r"session_(\d+)")
SESSION_DATE_FORMAT = "%I:%M %p on %d %B, %Y"


class UnreadableFileError(ValueError):
    """A file is not what can be ingested; the message starts with where."""


def read_turns(path: Path, timezone: ZoneInfo) -> list[TurnBody]:
    """Return every turn of a JSONL or LoCoMo file, in order and checked. Raises UnreadableFileError.

    `timezone` is where LoCoMo's session dates are local; JSONL turns carry their own offset.
    """
    text = _read_text(path)
    if text.lstrip().startswith("["):
        samples = _parse(text, str(path))
        try:
            return _checked(list(locomo_turns(samples, timezone)))
        except UnreadableFileError as error:
            raise UnreadableFileError(f"{path.name}, {error}") from error.__cause__
    return list(jsonl_turns(text, path.name))


def jsonl_turns(text: str, name: str) -> Iterator[TurnBody]:
    """Yield the turn of each line that is not blank. Raises UnreadableFileError naming `name` and the line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _check(_parse(line, f"{name}:{number}"), f"{name}:{number}")


def locomo_turns(samples: list[Any], timezone: ZoneInfo) -> Iterator[TurnBody]:
    """Yield every dialogue turn of each sample: one conversation a sample, sessions in their order.

    Within a conversation `occurred_at` strictly increases: the session's date plus 30 s a turn.
    Raises UnreadableFileError when a sample has another shape.
    """
    for position, sample in enumerate(samples):
        try:
            yield from _sample_turns(sample, timezone)
        except (KeyError, TypeError, AttributeError) as error:
            raise UnreadableFileError(f"sample {position}: not a LoCoMo sample ({_trouble(error)})") from error


def session_start(written: str, timezone: ZoneInfo) -> datetime:
    """Return the moment of a session date as LoCoMo writes it, e.g. `1:56 pm on 8 May, 2023`."""
    try:
        return datetime.strptime(written.strip(), SESSION_DATE_FORMAT).replace(tzinfo=timezone)
    except ValueError:
        raise UnreadableFileError(f"not a session date: {written!r}") from None


def _trouble(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else f"a value has another type: {error}"


def _sample_turns(sample: dict[str, Any], timezone: ZoneInfo) -> Iterator[TurnBody]:
    dialogue, name = sample["conversation"], str(sample["sample_id"])
    roles = {dialogue["speaker_a"]: "user", dialogue["speaker_b"]: "assistant"}
    gap, earliest = timedelta(seconds=SECONDS_BETWEEN_TURNS), datetime.min.replace(tzinfo=UTC)
    for session in _sessions(dialogue):
        moment = max(session_start(dialogue[f"{session}_date_time"], timezone).astimezone(UTC), earliest)
        for turn in dialogue[session]:
            yield _locomo_body(name, turn, role=roles[turn["speaker"]], at=moment.astimezone(timezone))
            moment = earliest = moment + gap


def _sessions(dialogue: dict[str, Any]) -> list[str]:
    # By the lists of turns, not by the dates: some samples date sessions that have no turns.
    numbered = [(int(found[1]), key) for key in dialogue if (found := SESSION.fullmatch(key))]
    return [key for _, key in sorted(numbered)]


def _locomo_body(sample: str, turn: dict[str, Any], *, role: str, at: datetime) -> TurnBody:
    caption = turn.get("blip_caption")
    said = [turn["text"], f"[image: {caption}]" if caption else ""]
    return {
        "user_id": sample,
        "agent_id": LOCOMO_AGENT,
        "conversation_id": sample,
        "client_turn_id": turn["dia_id"],
        "role": role,
        "speaker": turn["speaker"],
        "content": "\n".join(part for part in said if part),
        "occurred_at": at.isoformat(),
    }


def _checked(bodies: list[TurnBody]) -> list[TurnBody]:
    return [_check(body, f"{body['conversation_id']} {body['client_turn_id']}") for body in bodies]


def _check(body: Any, where: str) -> TurnBody:
    try:
        parse_turn(body)
    except InvalidTurnError as error:
        raise UnreadableFileError(f"{where}: {error}") from None
    checked: TurnBody = body
    return checked


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(f"{where}: not JSON ({error})") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableFileError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UnreadableFileError(f"{path}: not UTF-8 at byte {error.start}") from None
