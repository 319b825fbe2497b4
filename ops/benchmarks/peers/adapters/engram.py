"""engram-search without its cross-encoder, whose weights come over the network, and with the shared embedder."""

from pathlib import Path
from typing import Any

import numpy as np
from engram.backends.base import Document
from engram.backends.faiss_backend import FaissBackend
from engram.retrieval.pipeline import RetrievalPipeline

Turn = dict[str, Any]


class Peer:
    """A FAISS index with SQLite beside it, and the pipeline over what is in it."""

    def __init__(self, embedder: Any, place: Path) -> None:
        self.embedder, self.documents = embedder, []
        self.backend = FaissBackend(path=place, dimension=embedder.dimensions)
        self.pipeline = RetrievalPipeline(embedder=self, use_reranker=False)

    def encode_query(self, text: str) -> Any:
        return np.asarray(self.embedder.query(text))

    def add(self, turns: list[Turn]) -> None:
        for turn in turns:
            text = f"{turn['speaker']}: {turn['text']}"
            vector = self.embedder.passages([text])[0].tolist()
            self.documents.append(Document(turn["id"], text, vector, {"date": turn["at"]}))
        self.backend.add(self.documents)

    def search(self, query: str, limit: int) -> list[str]:
        return [document.id for document in self.pipeline.search(query, self.documents, top_k=limit)]


def build(embedder: Any, place: Path) -> Peer:
    """Return an empty index."""
    return Peer(embedder, place)
