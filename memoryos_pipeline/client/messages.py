"""From what agents hold (a sentence, a message, a list of messages) to turn bodies with keys of their own."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memoryos_pipeline.domain.ids import mint_id

Message = dict[str, Any]
OPTIONAL_FIELDS = ("content", "occurred_at", "metadata", "kind")


def turns_of(
    messages: str | Message | Sequence[Message], *, user_id: str, agent_id: str, conversation_id: str
) -> list[dict[str, Any]]:
    """Return turn bodies. A message without client_turn_id gets one here, before it is first sent, so that
    repeating the request cannot record it twice; without occurred_at it was said now, by the caller's clock.
    """
    listed = _listed(messages)
    conversation = {"user_id": user_id, "agent_id": agent_id, "conversation_id": conversation_id}
    return [conversation | _body(message, user_id=user_id, agent_id=agent_id) for message in listed]


def _listed(messages: str | Message | Sequence[Message]) -> list[Message]:
    if isinstance(messages, str):
        return [{"content": messages}]
    return [messages] if isinstance(messages, dict) else list(messages)


def _body(message: Message, *, user_id: str, agent_id: str) -> dict[str, Any]:
    role = message.get("role", "user")
    speaker = message.get("speaker") or message.get("name") or (user_id if role == "user" else agent_id)
    body = {
        "client_turn_id": message.get("client_turn_id") or str(mint_id()),
        "role": role,
        "speaker": speaker,
        "occurred_at": datetime.now(UTC),  # noqa: TID251 - when it was said is for the caller's clock to tell
    }
    body |= {name: message[name] for name in OPTIONAL_FIELDS if name in message}
    if isinstance(body["occurred_at"], datetime):
        body["occurred_at"] = body["occurred_at"].isoformat()
    return body
