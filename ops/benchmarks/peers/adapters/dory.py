"""dory-memory without Ollama: its words and its graph, no vectors (they come over the network)."""

from pathlib import Path
from typing import Any

from dory import DoryMemory, store
from dory import activation as act

Turn = dict[str, Any]


class Peer:
    """One graph; what a query activates, strongest first, as `query` puts it together before it is written out."""

    def __init__(self, place: Path) -> None:
        self.memory, self.turns = DoryMemory(db_path=place / "dory.db"), {}

    def add(self, turns: list[Turn]) -> None:
        for turn in turns:
            self.turns[self.memory.observe(f"{turn['speaker']}: {turn['text']}")] = turn["id"]

    def search(self, query: str, limit: int) -> list[str]:
        graph = self.memory.graph
        activated = act.spread(act.find_seeds(query, graph)[:8], graph)
        for node in store.search_fts(act._fts_query(query, n=6), graph.path, limit=50):
            activated.setdefault(node, graph.get_node(node).salience)
        ordered = sorted(activated, key=lambda node: -activated[node])
        return [self.turns[node] for node in ordered if node in self.turns][:limit]


def build(_embedder: Any, place: Path) -> Peer:
    """Return an empty graph; the embedder is not asked for."""
    return Peer(place)
