"""From evidence to candidates: the recorded features of every turn, piece of knowledge and page. Pure."""

import math
import re
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from memoryos_pipeline.domain.forgetting import DAY_SECONDS, weight
from memoryos_pipeline.domain.question_dates import closeness, has_time_expression
from memoryos_pipeline.domain.ranking import Candidate, Place
from memoryos_pipeline.models.lexical import normalize_text
from memoryos_pipeline.recall.bm25 import Owner
from memoryos_pipeline.recall.gather import Evidence
from memoryos_pipeline.store.search import FoundKnowledge, FoundPage, FoundTurn

SENTENCE_END = re.compile(r"[.!?。！？…]+")
QUESTION_MARKS = "?？"
SHORT_PIECE = 12
"""Characters of a greeting or an exclamation that tells nothing."""
WINDOW_SIGNALS = ("window_before", "window_around")


def build_candidates(evidence: Evidence, *, heat_half_life_days: float) -> list[Candidate]:
    """Return every candidate of the evidence with its features, unscaled."""
    turns = {place: _turn(evidence, turn) for place, turn in evidence.turns.items()}
    knowledge = [_knowledge(evidence, item, turns) for item in evidence.knowledge]
    pages = [_page(evidence, page, heat_half_life_days) for page in evidence.pages]
    return [*turns.values(), *knowledge, *pages]


def _turn(evidence: Evidence, turn: FoundTurn) -> Candidate:
    owner: Owner = ("turn", turn.turn_id)
    question, index = evidence.question, evidence.index
    before, after = (_neighbour(evidence, turn, step) for step in (-1, 1))
    features = _shared(evidence, owner, is_indexed=turn.terms is not None, at=[turn.occurred_at])
    features |= {
        "actor": float(question.actor == normalize_text(turn.speaker)),
        "time_word": float(question.asks_when and has_time_expression(turn.content)),
        "window_before": index.score([*before, owner]),
        "window_around": index.score([*before, owner, *after]),
        "question_only": float(is_question_only(turn.content)),
    }
    return Candidate("turn", turn.turn_id, features, Place(turn.conversation_id, turn.seq, turn.occurred_at))


def _knowledge(evidence: Evidence, item: FoundKnowledge, turns: dict[tuple[UUID, int], Candidate]) -> Candidate:
    """Knowledge stands in the context of the turns it cites, so it borrows their windows."""
    question = evidence.question
    cited = [turns[place].features for place in item.sources if place in turns]
    moments = [item.event_at or item.turn_at]
    features = _shared(evidence, ("knowledge", item.knowledge_id), is_indexed=True, at=moments)
    features |= {name: max((each[name] for each in cited), default=0.0) for name in WINDOW_SIGNALS}
    features |= {
        "actor": float(question.actor == normalize_text(item.actor)),
        "time_word": float(question.asks_when and (item.event_at is not None or has_time_expression(item.content))),
        "vitality": weight(evidence.frame.now, item.last_reinforced_at, strength_days=item.strength_days, w0=item.w0),
    }
    return Candidate("knowledge", item.knowledge_id, features, sources=item.sources)


def _page(evidence: Evidence, page: FoundPage, heat_half_life_days: float) -> Candidate:
    features = _shared(evidence, ("page", page.page_id), is_indexed=True, at=[page.first_turn_at, page.last_turn_at])
    idle_days = max(0.0, (evidence.frame.now - page.heat_at).total_seconds() / DAY_SECONDS)
    features["vitality"] = page.heat * 0.5 ** (idle_days / heat_half_life_days)
    sources = tuple((page.conversation_id, seq) for seq in range(page.first_seq, page.last_seq + 1))
    return Candidate("page", page.page_id, features, sources=sources)


def _shared(evidence: Evidence, owner: Owner, *, is_indexed: bool, at: Iterable[datetime]) -> dict[str, float]:
    features = {
        "bm25": evidence.index.score([owner]),
        "date": max(closeness(evidence.question.windows, moment) for moment in at),
        "length": math.log1p(evidence.index.length(owner)),
    }
    cosine = evidence.cosine(owner, is_indexed=is_indexed)
    if cosine is not None:
        features["dense"] = cosine
    return features


def _neighbour(evidence: Evidence, turn: FoundTurn, step: int) -> list[Owner]:
    found = evidence.turns.get((turn.conversation_id, turn.seq + step))
    return [("turn", found.turn_id)] if found else []


def is_question_only(text: str) -> bool:
    """Tell whether a turn asks and tells nothing: whatever does not end in a question mark is a word or two."""
    if not any(sign in text for sign in QUESTION_MARKS):
        return False
    return all(
        len(piece) <= SHORT_PIECE or any(sign in mark for sign in QUESTION_MARKS) for piece, mark in _sentences(text)
    )


def _sentences(text: str) -> list[tuple[str, str]]:
    pieces, start = [], 0
    for match in SENTENCE_END.finditer(text):
        pieces.append((text[start : match.start()].strip(), match.group()))
        start = match.end()
    pieces.append((text[start:].strip(), ""))
    return [(piece, mark) for piece, mark in pieces if piece]
