"""A language model without a model: rules and sentence vectors, deterministic, no key and no network."""

from collections.abc import Sequence

from memoryos_pipeline.domain.errors import ModelError
from memoryos_pipeline.domain.knowledge import Candidate, Distillate, Neighbour, Verdict
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.statements_verdicts import decide
from memoryos_pipeline.models import extractive_summary
from memoryos_pipeline.models.extractive_distill import distill_statements, find_traits
from memoryos_pipeline.models.protocols import Embedder, Journal


class ExtractiveModel:
    """Quotes what was said instead of writing; honest about it in `name`. It cannot answer questions."""

    name = "extractive@1"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:  # noqa: ARG002 - nothing is paid for
        """Choose the sentences, words and topics that stand for a page. Raises ModelError from the embedder."""
        turns = extractive_summary.said_turns(page.turns)
        summary = extractive_summary.show(extractive_summary.choose_lines(turns, self._embedder))
        keywords = extractive_summary.find_keywords(turns)
        return PageSummary(
            summary=summary,
            keywords=keywords,
            topics=extractive_summary.name_topics(turns, keywords),
            continues=extractive_summary.goes_on(page),
            model=self.name,
        )

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:  # noqa: ARG002 - nothing is paid for
        """Find the statements of a page by rules."""
        candidates = distill_statements(page)
        return Distillate(candidates, find_traits(candidates), self.name)

    def resolve(
        self,
        candidates: Sequence[Candidate],
        neighbours: Sequence[Sequence[Neighbour]],
        *,
        journal: Journal,  # noqa: ARG002 - nothing is paid for
    ) -> list[Verdict]:
        """Decide by equal text and equal slots. Raises ModelError when candidates and neighbours do not pair up."""
        if len(candidates) != len(neighbours):
            message = f"{len(candidates)} candidates with {len(neighbours)} lists of neighbours"
            raise ModelError(message)
        return [decide(candidate, near) for candidate, near in zip(candidates, neighbours, strict=True)]

    def answer(self, question: str, context: str, *, journal: Journal) -> str | None:  # noqa: ARG002
        """Return None: this model does not write."""
        return None
