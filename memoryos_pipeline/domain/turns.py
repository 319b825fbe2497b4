"""A turn: one message of a conversation, immutable once recorded."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Role = Literal["user", "assistant", "system", "tool"]
TurnKind = Literal["normal", "system", "recalled"]


@dataclass(frozen=True, slots=True)
class ConversationName:
    """A conversation as its caller names it."""

    user_id: str
    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A validated turn on its way in. `content` is plain text; `parts` keeps what was sent when it was a list."""

    user_id: str
    agent_id: str
    conversation_id: str
    client_turn_id: str
    role: Role
    speaker: str
    content: str
    occurred_at: datetime
    parts: list[Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a recorded turn: `position` is where the event feed stands after its commit."""

    client_turn_id: str
    turn_id: UUID
    conversation_id: str
    seq: int
    position: int
    body_sha256: bytes
    duplicate: bool = False
