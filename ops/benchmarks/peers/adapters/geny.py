"""geny-memory-adaptor: BM25, its own static embeddings, a graph and a ranker that has not learnt anything yet."""

from pathlib import Path
from typing import Any

from geny_memory_adaptor import SynapseMemory

Turn = dict[str, Any]


class Peer:
    """One SQLite file."""

    def __init__(self, place: Path) -> None:
        self.memory = SynapseMemory.open(str(place / "synapse.db"))

    def add(self, turns: list[Turn]) -> None:
        for turn in turns:
            self.memory.index(turn["id"], f"{turn['speaker']}: {turn['text']}")

    def search(self, query: str, limit: int) -> list[str]:
        return [hit.id for hit in self.memory.search(query, top_k=limit)]


def build(_embedder: Any, place: Path) -> Peer:
    """Return an empty memory; the embedder is not asked for."""
    return Peer(place)
