"""A turn: one message of a conversation, immutable once recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

Role = Literal["user", "assistant", "system", "tool"]
TurnKind = Literal["normal", "system", "recalled"]


@dataclass(frozen=True, slots=True)
class ConversationName:
    """A conversation as its caller names it."""

    user_id: str
    agent_id: str
    conversation_id: str


class NewTurn(NamedTuple):
    """A validated turn on its way in. `content` is plain text; `parts` keeps what was sent when it was a list.

    A tuple, like `Receipt`: a thousand of them come with one request, and a frozen class costs three times as much.
    """

    user_id: str
    agent_id: str
    conversation_id: str
    client_turn_id: str
    role: Role
    speaker: str
    content: str
    occurred_at: datetime
    parts: list[Any] | None = None
    metadata: Mapping[str, Any] | None = None
    kind: TurnKind = "normal"


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded turn. `occurred_at` carries the offset it was said in; seq counts from 1 without gaps."""

    turn_id: UUID
    conversation_id: UUID
    scope_id: UUID
    seq: int
    role: Role
    speaker: str
    content: str
    lang: str
    occurred_at: datetime
    recorded_at: datetime
    kind: TurnKind = "normal"


class Receipt(NamedTuple):
    """The answer to a recorded turn: `position` is where the event feed stands after its commit.

    `turn_id` is a UUID as text, `body_sha256` 32 bytes.
    """

    client_turn_id: str
    turn_id: str
    conversation_id: str
    seq: int
    position: int
    body_sha256: bytes
    duplicate: bool = False
