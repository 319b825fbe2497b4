"""What a client can put in: turns, the end of a conversation, the erasure of a user."""

from collections.abc import Sequence
from typing import Any

from memoryos_pipeline.client.messages import Message, turns_of
from memoryos_pipeline.client.outbox import Conversation
from memoryos_pipeline.client.transport import Transport
from memoryos_pipeline.domain.paths import segment

MAX_TURNS = 1000
Receipt = dict[str, Any]


class WritingClient(Transport):
    """Requests that change something; each is safe to repeat because it carries its own keys."""

    def add(
        self,
        messages: str | Message | Sequence[Message],
        *,
        user_id: str,
        agent_id: str = "default",
        conversation_id: str = "default",
    ) -> list[Receipt]:
        """Record messages (`{"role", "content", ...}`) as turns of one conversation; returns once they are committed.

        A message may also name `speaker`, `client_turn_id`, `occurred_at` (with offset) and `metadata`.
        """
        bodies = turns_of(messages, user_id=user_id, agent_id=agent_id, conversation_id=conversation_id)
        return self.add_turns(bodies)

    def add_turns(self, turns: Sequence[dict[str, Any]]) -> list[Receipt]:
        """Record full turn bodies, in order, and return a receipt each (`seq`, `position`, `duplicate`, ids).

        More than 1,000 go in several requests, each all or none. Raises InvalidRequestError naming the field,
        ConflictError when a client_turn_id was used for another body.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(turns), MAX_TURNS):
            answer = self.request("POST", "/v1/turns", json={"turns": list(turns[start : start + MAX_TURNS])})
            receipts.extend(answer["turns"])
        return receipts

    def receipts(self, conversation: Conversation, client_turn_ids: Sequence[str]) -> list[Receipt]:
        """Return the receipts of those turns that are recorded; the others are left out."""
        found: list[Receipt] = []
        for start in range(0, len(client_turn_ids), MAX_TURNS):
            asked = {**conversation._asdict(), "client_turn_ids": list(client_turn_ids[start : start + MAX_TURNS])}
            found.extend(self.request("POST", "/v1/receipts", json=asked)["turns"])
        return found

    def close_conversation(self, conversation: Conversation) -> None:
        """Say that a conversation is over: whatever is still hot is sealed."""
        self.request("POST", "/v1/conversations/close", json=conversation._asdict())

    def delete_user(self, user_id: str) -> Any:
        """Erase a user and everything that came from them; returns the erasure receipt."""
        return self.request("DELETE", f"/v1/users/{segment(user_id)}")
