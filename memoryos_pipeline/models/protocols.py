"""The two protocols every model honours: Embedder and LanguageModel. A conformance suite holds them to it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_pipeline.domain.budget import Payment
from memoryos_pipeline.domain.knowledge import Candidate, Distillate, Neighbour, Verdict
from memoryos_pipeline.domain.pages import PageSummary, PageText

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A unit vector, how many tokens it stands for, and whether the text was cut at the token cap."""

    vector: Vector
    tokens: int
    truncated: bool


class Embedder(Protocol):
    """Turns text into unit vectors of one space. Safe to build before a fork; the weights load on first use."""

    model: str
    revision: str
    dimensions: int
    token_cap: int

    def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        """Embed stored text, one result a text, in order. Raises ModelError, never returns a short list."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Embed a question. Raises ModelError."""
        ...


class Journal(Protocol):
    """Keeps paid answers, so that a crash after the answer never pays twice."""

    def find(self, task: str, request_sha256: bytes) -> dict[str, Any] | None:
        """Return the kept answer to this very request, or None."""
        ...

    def keep(  # noqa: PLR0913 - one column each
        self, task: str, request_sha256: bytes, response: dict[str, Any], *, model: str, prompt_version: str,
        tokens_in: int, tokens_out: int,
    ) -> None:  # fmt: skip
        """Keep an answer before it is applied, in a transaction of its own."""
        ...

    def paying(self, provider: str, *, tokens: int, seconds: float) -> AbstractContextManager[Payment]:
        """Stand around one call of at most so many tokens and seconds; whoever calls fills in what it cost.

        Raises ModelUnavailableError before the call when the budget is spent or calls to the provider are paused.
        """
        ...


class LanguageModel(Protocol):
    """Reads pages. Every method is a function of its arguments; failures raise ModelError, never become text."""

    name: str
    """Model and prompt version, stored with what it wrote (`extracted_by`, `summary_model`)."""

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Summarize a page in the language of its turns."""
        ...

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:
        """Find the statements of a page that are worth keeping, each citing turns of the page."""
        ...

    def resolve(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Neighbour]], *, journal: Journal
    ) -> list[Verdict]:
        """Decide on each candidate beside its own neighbours; one verdict a candidate, in order."""
        ...

    def answer(self, question: str, context: str, *, journal: Journal) -> str | None:
        """Answer from the context alone, or None when this model cannot generate."""
        ...
