"""Plain cosine over the turns, and nothing else."""

import numpy as np


class Peer:
    """A matrix of vectors."""

    def __init__(self, embedder):
        self.embedder = embedder

    def add(self, turns):
        self.ids = [turn["id"] for turn in turns]
        self.matrix = np.stack(self.embedder.passages(f"{turn['speaker']}: {turn['text']}" for turn in turns))

    def search(self, query, limit):
        order = np.argsort(-(self.matrix @ self.embedder.query(query)))
        return [self.ids[place] for place in order[:limit]]


def build(embedder, place):
    """Return an empty matrix."""
    return Peer(embedder)
