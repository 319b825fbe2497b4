"""Honest doubles: models that do what the protocol says, by a rule a test can see through."""

import re
from collections.abc import Sequence

from memoryos_pipeline.domain.knowledge import Candidate, Distillate, Neighbour, Verdict
from memoryos_pipeline.domain.pages import PageSummary, PageText
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.models.protocols import Journal


class HashtagModel:
    """Summarizes a page by its turns' first words; its keywords are the #tags its turns carry."""

    name = "hashtag/1"

    def summarize(self, page: PageText, *, journal: Journal) -> PageSummary:
        """Say each turn once; a page continues the previous one when they share a tag."""
        tags = _tags(page.turns)
        summary = " ".join(turn.content for turn in page.turns)
        continues = bool(set(tags) & set(_tags(page.previous_turns)))
        return PageSummary(summary, tags, tags[:2], continues, self.name)

    def distill(self, page: PageText, *, journal: Journal) -> Distillate:
        """Find nothing, on purpose."""
        return Distillate((), (), self.name)

    def resolve(
        self, candidates: Sequence[Candidate], neighbours: Sequence[Sequence[Neighbour]], *, journal: Journal
    ) -> list[Verdict]:
        """Have nothing to decide."""
        return []

    def answer(self, question: str, context: str, *, journal: Journal) -> str | None:
        """Do not generate."""
        return None


def _tags(turns: Sequence[Turn]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for turn in turns for tag in re.findall(r"#(\w+)", turn.content)))
