"""Says how much the memory doubts that the person a question names said what is asked for. Pure."""

import numpy as np

from memoryos_pipeline.domain.answerability import Heard, NotSaid, doubt_said, ends_asking
from memoryos_pipeline.recall.features import Candidates
from memoryos_pipeline.recall.gather import Evidence


def find_doubt(evidence: Evidence, candidates: Candidates) -> NotSaid | None:
    """Return the doubt about the one person a question names; None when it names nobody, or several."""
    if evidence.question.actor is None:
        return None
    words, said = (candidates.features[name] for name in ("bm25", "actor"))
    asks = evidence.turns["ends_asking"] > 0
    asks[evidence.fresh] = [ends_asking(text) for text in evidence.texts]
    heard = (
        Heard(said[place] > 0, float(words[place]), asks=bool(asks[place]))
        for place in np.flatnonzero(words[: len(evidence.turns)] > 0)
    )
    return NotSaid(evidence.question.actor, doubt_said(heard))
