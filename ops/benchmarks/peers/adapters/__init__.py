"""One module a peer: `build(embedder, place)` returns what has `add(turns)` and `search(query, limit)`."""
