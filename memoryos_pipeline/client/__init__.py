"""SDK: the HTTP client and the queue publisher, with the names mem0 users know."""

from memoryos_pipeline.client.http import MemoryClient
from memoryos_pipeline.client.outbox import Conversation, Outbox, Refusal, SQLiteOutbox
from memoryos_pipeline.client.publisher import Flushed, TurnPublisher

__all__ = ["Conversation", "Flushed", "MemoryClient", "Outbox", "Refusal", "SQLiteOutbox", "TurnPublisher"]
