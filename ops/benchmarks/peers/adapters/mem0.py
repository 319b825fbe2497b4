"""mem0 without its language model (`infer=False`), in a local Qdrant, with the shared embedder; spaCy is not there."""

import os
from pathlib import Path
from typing import Any

os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "unused", "POSTHOG_DISABLED": "1"}

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

Turn = dict[str, Any]


class Vectors(EmbeddingBase):
    """The shared embedder as mem0 takes one."""

    def __init__(self, embedder: Any) -> None:
        super().__init__(None)
        self.embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        if memory_action == "search":
            return self.embedder.query(text).tolist()
        return self.embedder.passages([text])[0].tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class Peer:
    """One user's memories."""

    def __init__(self, embedder: Any, place: Path) -> None:
        store = {"path": str(place / "qdrant"), "on_disk": True, "embedding_model_dims": embedder.dimensions}
        self.memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(place / "history.db"),
            }
        )
        self.memory.embedding_model = Vectors(embedder)

    def add(self, turns: list[Turn]) -> None:
        for turn in turns:
            said = [{"role": "user", "content": f"{turn['speaker']}: {turn['text']}"}]
            self.memory.add(said, user_id="u", metadata={"turn": turn["id"]}, infer=False)

    def search(self, query: str, limit: int) -> list[str]:
        found = self.memory.search(query, filters={"user_id": "u"}, top_k=limit, threshold=0.0)
        return [row["metadata"]["turn"] for row in found["results"]]


def build(embedder: Any, place: Path) -> Peer:
    """Return an empty memory."""
    return Peer(embedder, place)
