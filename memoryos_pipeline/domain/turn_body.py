"""From the body of a turn, as HTTP and the queue `ingest` carry it, to a NewTurn, and its canonical hash. Pure."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring as quote
from typing import Any, cast

from memoryos_pipeline.domain.errors import InvalidTurnError
from memoryos_pipeline.domain.text_gate import flatten_content, gate_id, gate_object, show_name
from memoryos_pipeline.domain.turns import ConversationName, NewTurn, Role, TurnKind

DEFAULT_AGENT = "default"
MAX_TURNS = 1000
"""Turns in one request or one queue message."""
ROLES = ("user", "assistant", "system", "tool")
KINDS = ("normal", "system", "recalled")
FIELDS = frozenset({
    "user_id", "agent_id", "conversation_id", "client_turn_id", "role", "speaker", "name", "content", "occurred_at",
    "metadata", "kind",
})  # fmt: skip
NAME_FIELDS = frozenset({"user_id", "agent_id", "conversation_id"})
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
SURELY_BETWEEN = (EARLIEST.year, LATEST.year - 1)
"""Between these years no offset matters, and comparing years costs a tenth of comparing moments."""
MAX_OFFSET = timedelta(hours=16)
TOO_FINE = re.compile(r"[.,]\d{7}")
SHORTEST_TOO_FINE = len("20260504T180200.1234567") - 1

_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def parse_turn(body: object, *, path: str = "") -> NewTurn:
    """Return the turn a body describes; `path` (e.g. `turns.3.`) stands before field names in errors.

    Raises InvalidTurnError with the field and the problem.
    """
    if not isinstance(body, dict):
        raise InvalidTurnError(path.rstrip(".") or "body", "must be an object")
    _refuse_unknown(body, path)
    user_id = gate_id(_required(body, "user_id", path), f"{path}user_id")
    agent_id = gate_id(_given(body, "agent_id", DEFAULT_AGENT), f"{path}agent_id")
    role = _choice(_required(body, "role", path), ROLES, f"{path}role")
    content, parts = flatten_content(_required(body, "content", path), f"{path}content")
    return NewTurn(
        user_id=user_id,
        agent_id=agent_id,
        conversation_id=gate_id(_required(body, "conversation_id", path), f"{path}conversation_id"),
        client_turn_id=gate_id(_required(body, "client_turn_id", path), f"{path}client_turn_id"),
        role=cast("Role", role),
        speaker=_speaker(body, path, default=user_id if role == "user" else agent_id),
        content=content,
        occurred_at=parse_moment(_required(body, "occurred_at", path), f"{path}occurred_at"),
        parts=parts,
        metadata=gate_object(_given(body, "metadata", {}), f"{path}metadata"),
        kind=_kind(body, role, path),
    )


def parse_turns(body: object) -> list[NewTurn]:
    """Return the turns of a request: one turn object, or `{"turns": [...]}` with 1 to 1,000 of them."""
    if not isinstance(body, dict):
        raise InvalidTurnError("body", "must be a turn or an object with turns")
    if "turns" not in body:
        return [parse_turn(body)]
    extra = next((name for name in body if name != "turns"), None)
    if extra is not None:
        raise InvalidTurnError(show_name(extra), "is not a field beside turns")
    turns = body["turns"]
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        raise InvalidTurnError("turns", f"must be a list of 1 to {MAX_TURNS} turns")
    return [parse_turn(turn, path=f"turns.{position}.") for position, turn in enumerate(turns)]


def parse_conversation_name(body: object, *, more: frozenset[str] = frozenset()) -> ConversationName:
    """Return the conversation a body names; fields other than its three and `more` are refused."""
    if not isinstance(body, dict):
        raise InvalidTurnError("body", "must be an object")
    _refuse_unknown(body, "", known=NAME_FIELDS | more)
    return ConversationName(
        user_id=gate_id(_required(body, "user_id", ""), "user_id"),
        agent_id=gate_id(_given(body, "agent_id", DEFAULT_AGENT), "agent_id"),
        conversation_id=gate_id(_required(body, "conversation_id", ""), "conversation_id"),
    )


def parse_receipt_query(body: object) -> tuple[ConversationName, list[str]]:
    """Return the conversation and the client_turn_ids (1 to 1,000) whose receipts are asked for."""
    name = parse_conversation_name(body, more=frozenset({"client_turn_ids"}))
    turns = _required(cast("dict[str, Any]", body), "client_turn_ids", "")
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        raise InvalidTurnError("client_turn_ids", f"must be a list of 1 to {MAX_TURNS} ids")
    return name, [gate_id(turn, f"client_turn_ids.{position}") for position, turn in enumerate(turns)]


def parse_moment(value: object, field: str) -> datetime:
    """Return an aware datetime from ISO 8601 with an offset, between 1970 and 2200, to the microsecond."""
    if not isinstance(value, str) or len(value) > 64:
        raise InvalidTurnError(field, "must be an ISO 8601 date and time with an offset")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidTurnError(field, "must be an ISO 8601 date and time with an offset") from None
    offset = moment.utcoffset()
    if offset is None:
        raise InvalidTurnError(field, "must carry an offset from UTC, such as +09:00 or Z")
    if not -MAX_OFFSET < offset < MAX_OFFSET or offset.seconds % 60 or offset.microseconds:
        raise InvalidTurnError(field, "must have an offset of whole minutes, below 16 hours")
    if not SURELY_BETWEEN[0] < moment.year < SURELY_BETWEEN[1] and not EARLIEST <= moment < LATEST:
        raise InvalidTurnError(field, "must lie between 1970 and 2200")
    if len(value) > SHORTEST_TOO_FINE and TOO_FINE.search(value):
        raise InvalidTurnError(field, "must not be finer than a microsecond")
    return moment


def canonical_turn(turn: NewTurn) -> str:
    """Return everything a turn says as one JSON object, always written the same way; this form is stored and hashed.

    Keys in order, no spaces, no escapes but those JSON demands: `json.dumps` of the fields with sorted keys.
    """
    return (
        f'{{"agent_id":{quote(turn.agent_id)},"client_turn_id":{quote(turn.client_turn_id)},'
        f'"content":{quote(turn.content)},"conversation_id":{quote(turn.conversation_id)},"kind":"{turn.kind}",'
        f'"metadata":{_canonical(turn.metadata) if turn.metadata else "{}"},'
        f'"occurred_at":"{turn.occurred_at.isoformat()}","parts":{_canonical(turn.parts) if turn.parts else "null"},'
        f'"role":"{turn.role}","speaker":{quote(turn.speaker)},"user_id":{quote(turn.user_id)}}}'
    )


def hash_turn(turn: NewTurn) -> bytes:
    """Return the SHA-256 of the canonical form: equal hashes are the same turn sent again."""
    return hash_canonical(canonical_turn(turn))


def hash_canonical(canonical: str) -> bytes:
    """Return the SHA-256 of a canonical form that is at hand."""
    return hashlib.sha256(canonical.encode()).digest()


def _refuse_unknown(body: Mapping[str, Any], path: str, *, known: frozenset[str] = FIELDS) -> None:
    if not known.issuperset(body):
        unknown = min(show_name(name) for name in body if name not in known)
        raise InvalidTurnError(f"{path}{unknown}", "is not a field here")


def _required(body: Mapping[str, Any], name: str, path: str) -> object:
    value = body.get(name)
    if value is None:
        raise InvalidTurnError(f"{path}{name}", "is required")
    return value


def _given(body: Mapping[str, Any], name: str, default: object) -> object:
    value = body.get(name)
    return default if value is None else value


def _choice(value: object, choices: tuple[str, ...], field: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidTurnError(field, f"must be one of {', '.join(choices)}")
    return value


def _speaker(body: Mapping[str, Any], path: str, *, default: str) -> str:
    speaker, name = body.get("speaker"), body.get("name")
    if speaker is not None and name is not None and speaker != name:
        raise InvalidTurnError(f"{path}name", "differs from speaker; send one of the two")
    if speaker is not None:
        return gate_id(speaker, f"{path}speaker")
    return default if name is None else gate_id(name, f"{path}name")


def _kind(body: Mapping[str, Any], role: str, path: str) -> TurnKind:
    default = "system" if role == "system" else "normal"
    return cast("TurnKind", _choice(_given(body, "kind", default), KINDS, f"{path}kind"))
