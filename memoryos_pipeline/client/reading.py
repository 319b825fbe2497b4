"""What a client can read: searches, contexts, the tiers page by page, and how far the pipeline is."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memoryos_pipeline.client.errors import NotDrainedError, NotThereYetError
from memoryos_pipeline.client.transport import Transport
from memoryos_pipeline.domain.paths import segment

PAGE_ROWS = 200
POLL_SECONDS = 0.1

Row = dict[str, Any]


class ReadingClient(Transport):
    """Requests that change nothing (`answer` records the two turns of its exchange)."""

    def search(self, query: str, *, user_id: str, limit: int = 10, **options: Any) -> Row:
        """Return what matches a query over hot, warm and cold, with score, why, date and source turns.

        `options` are further fields of POST /v1/search, e.g. `agent_id`, `kinds`, the filters `since`, `until`,
        `tiers`, `conversation_id` and `speaker`, `min_score`, or `min_position` (of a receipt) and `max_wait_ms`: the
        answer then says under `behind` what of it cannot be read yet. Moments are aware `datetime` or ISO 8601 with an
        offset.
        """
        return self._ask("/v1/search", {"query": query, "user_id": user_id, "limit": limit, **options})

    def context(self, query: str, *, user_id: str, max_tokens: int = 800, **options: Any) -> Row:
        """Return prompt-ready text within a token budget and the items it is made of; `options` as for `search`.

        Here `conversation_id` is the conversation that is going on; `only_conversation_id` is the filter.
        """
        return self._ask("/v1/context", {"query": query, "user_id": user_id, "max_tokens": max_tokens, **options})

    def answer(self, query: str, *, user_id: str, **options: Any) -> Row:
        """Return an answer with its sources; never sent twice, because it records turns.

        `options` are further fields of POST /v1/answer, e.g. `agent_id`, `conversation_id`, `max_tokens`.
        """
        return self._ask("/v1/answer", {"query": query, "user_id": user_id, **options}, repeat=False)

    def turns(self, *, user_id: str, **filters: Any) -> Iterator[Row]:
        """Yield every recorded turn of a user, in a stable order."""
        return self._rows("turns", user_id, filters)

    def pages(self, *, user_id: str, **filters: Any) -> Iterator[Row]:
        """Yield every page of a user with tier, summary and heat."""
        return self._rows("pages", user_id, filters)

    def knowledge(self, *, user_id: str, **filters: Any) -> Iterator[Row]:
        """Yield what is known about a user, with weight, validity and sources."""
        return self._rows("knowledge", user_id, filters)

    def profile(self, *, user_id: str, **filters: Any) -> Iterator[Row]:
        """Yield the traits of a user's profile."""
        return self._rows("profile", user_id, filters)

    def status(self) -> Row:
        """Return how far the pipeline is: `owed` counts work that is due, leased or waiting for its turn."""
        answer: Row = self.request("GET", "/v1/pipeline")
        return answer

    def wait(self, timeout_seconds: float = 600.0) -> Row:
        """Return the status once nothing is owed. Raises NotDrainedError when that takes longer."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            status = self.status()
            if not status["owed"]:
                return status
            if time.monotonic() >= deadline:
                raise NotDrainedError(status["owed"], timeout_seconds)
            self._pause(POLL_SECONDS)

    def watermarks(self, conversation_id: str, *, user_id: str, agent_id: str = "default") -> Row:
        """Return through which turn a conversation has come, stage by stage, and what each stage waits for.

        The stages are `recorded`, `sealed`, `summarized`, `embedded`, `segmented`, `distilled` and `merged`.
        Raises NotFoundError.
        """
        path = f"/v1/conversations/{segment(conversation_id)}/watermarks"
        answer: Row = self.request("GET", path, params={"user_id": user_id, "agent_id": agent_id})
        return answer

    def wait_through(
        self,
        conversation_id: str,
        *,
        user_id: str,
        agent_id: str = "default",
        through: str = "embedded",
        timeout_seconds: float = 60.0,
    ) -> Row:
        """Return the watermarks once all turns that leave the hot buffer have come through a stage.

        Raises NotThereYetError when that takes longer, NotFoundError when there is no such conversation.
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            marks = self.watermarks(conversation_id, user_id=user_id, agent_id=agent_id)
            if through == "recorded" or (not marks["sealing_owed"] and marks[through] >= marks["sealed"]):
                return marks
            if time.monotonic() >= deadline:
                raise NotThereYetError(through, timeout_seconds, marks)
            self._pause(POLL_SECONDS)

    def _ask(self, path: str, asked: Row, *, repeat: bool = True) -> Row:
        given = {name: _written(value) for name, value in asked.items() if value is not None}
        answer: Row = self.request("POST", path, json=given, repeat=repeat)
        return answer

    def _rows(self, tier: str, user_id: str, filters: Row) -> Iterator[Row]:
        cursor: str | None = None
        while True:
            params = {"user_id": user_id, "limit": PAGE_ROWS, "cursor": cursor, **filters}
            answer = self.request("GET", f"/v1/{tier}", params=params)
            yield from answer[tier]
            cursor = answer.get("cursor")
            if cursor is None:
                return


def _written(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
