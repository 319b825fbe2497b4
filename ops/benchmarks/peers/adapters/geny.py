"""geny-memory-adaptor: BM25, its own static embeddings, a graph and a ranker that has not learnt anything yet."""

from geny_memory_adaptor import SynapseMemory


class Peer:
    """One SQLite file."""

    def __init__(self, place):
        self.memory = SynapseMemory.open(str(place / "synapse.db"))

    def add(self, turns):
        for turn in turns:
            self.memory.index(turn["id"], f"{turn['speaker']}: {turn['text']}")

    def search(self, query, limit):
        return [hit.id for hit in self.memory.search(query, top_k=limit)]


def build(embedder, place):
    """Return an empty memory; the embedder is not asked for."""
    return Peer(place)
