"""The SDK's HTTP client: writing, reading and single statements, and the names mem0 users know."""

from typing import Any, Self

from memoryos_pipeline.client.reading import ReadingClient
from memoryos_pipeline.client.statements import StatementClient
from memoryos_pipeline.client.writing import WritingClient


class MemoryClient(WritingClient, ReadingClient, StatementClient):
    """One tenant's memory over HTTP. Use it as a context manager, or call `close`."""

    @classmethod
    def connect(cls) -> Self:
        """Connect the way the `memoryos` command does. Raises NotConnectedError, SettingsError.

        MEMORYOS_API_URL and MEMORYOS_API_KEY say where; without them a running `memoryos up` of this account does.
        """
        from memoryos_pipeline.reach import find_connection  # noqa: PLC0415 - with a URL and a key nobody needs it
        from memoryos_pipeline.settings import load_settings  # noqa: PLC0415

        reach = find_connection(load_settings())
        return cls(reach.api_url, reach.api_key)

    def get_all(self, *, user_id: str, **filters: Any) -> list[dict[str, Any]]:
        """Return all knowledge of a user (mem0's name for `knowledge`)."""
        return list(self.knowledge(user_id=user_id, **filters))

    def delete_all(self, *, user_id: str) -> Any:
        """Erase a user (mem0's name for `delete_user`)."""
        return self.delete_user(user_id)
