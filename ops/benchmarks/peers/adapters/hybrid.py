"""The usual hybrid: BM25 and cosine, each min-max scaled, half and half."""

from pathlib import Path
from typing import Any

import bm25s
import numpy as np

from adapters import bm25, cosine

Turn = dict[str, Any]


class Peer:
    """Both of the plain ones."""

    def __init__(self, embedder: Any) -> None:
        self.words, self.meaning = bm25.Peer(), cosine.Peer(embedder)

    def add(self, turns: list[Turn]) -> None:
        self.words.add(turns)
        self.meaning.add(turns)

    def search(self, query: str, limit: int) -> list[str]:
        tokens = bm25s.tokenize(query, stopwords="en", return_ids=False, show_progress=False)[0]
        words = self.words.index.get_scores(tokens) if tokens else np.zeros(len(self.words.ids))
        total = scale(words) + scale(self.meaning.matrix @ self.meaning.embedder.query(query))
        return [self.words.ids[place] for place in np.argsort(-total)[:limit]]


def scale(column: Any) -> Any:
    """Return the column between 0 and 1."""
    spread = column.max() - column.min()
    return (column - column.min()) / spread if spread else column * 0


def build(embedder: Any, _place: Path) -> Peer:
    """Return both, empty."""
    return Peer(embedder)
