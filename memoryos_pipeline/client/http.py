"""The SDK's HTTP client: everything the API offers, and the names mem0 users know."""

from typing import Any

from memoryos_pipeline.client.reading import ReadingClient
from memoryos_pipeline.client.writing import WritingClient


class MemoryClient(WritingClient, ReadingClient):
    """One tenant's memory over HTTP. Use it as a context manager, or call `close`."""

    def get_all(self, *, user_id: str, **filters: Any) -> list[dict[str, Any]]:
        """Return all knowledge of a user (mem0's name for `knowledge`)."""
        return list(self.knowledge(user_id=user_id, **filters))

    def delete_all(self, *, user_id: str) -> Any:
        """Erase a user (mem0's name for `delete_user`)."""
        return self.delete_user(user_id)
