"""Summarizes a page by choosing its most telling sentences; nothing is written that was not said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from memoryos_pipeline.domain.pages import PageText
from memoryos_pipeline.domain.statements import Sentence, bounded_sentences, is_polite_phrase, is_question
from memoryos_pipeline.domain.statements_topics import find_topics
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.models.lexical import lexical_terms
from memoryos_pipeline.models.protocols import Embedder, Vector
from memoryos_pipeline.models.surface import surface_keywords

MAX_SENTENCES = 32
"""Sentences of a page whose vectors are compared; of more, an even sample that holds the first and the last."""
EMBEDDED_CHARACTERS = 120
SHOWN_CHARACTERS = 240
CHOSEN_SENTENCES = 3
KEYWORDS = 8
TOPICS = 2
NOVELTY = 0.4
"""Share of a sentence's likeness to what is chosen already that counts against it."""
CENTRALITY = 0.4
USER_BONUS = 0.3
TOPIC_BONUS = 0.15
FULLNESS_BONUS = 0.4
FULL_TERMS = 10
QUESTION_LOSS = 0.3
ONE_SITTING = timedelta(minutes=30)
SHARED_TERMS = 3
SHARED_SHARE = 0.2
MAX_TERM_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a page with the turn it is from."""

    turn: Turn
    sentence: Sentence


def said_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Return what user and assistant said themselves; system, tool and recalled turns are nobody's words."""
    return [turn for turn in turns if turn.role in ("user", "assistant") and turn.kind == "normal"]


def choose_lines(turns: Sequence[Turn], embedder: Embedder) -> list[Line]:
    """Return at most three sentences that stand for the page, in the order they were said. Raises ModelError."""
    lines = _sampled([line for turn in turns for line in _lines(turn)])
    if not lines:  # a page of thanks and greetings is summarized by them
        lines = _sampled([line for turn in turns for line in _lines(turn, also_polite=True)])
    if len(lines) <= CHOSEN_SENTENCES:
        return lines
    embedded = embedder.embed_passages([line.sentence.text[:EMBEDDED_CHARACTERS] for line in lines])
    matrix = np.stack([one.vector for one in embedded])
    chosen = _choose(matrix, np.array([_bonus(line) for line in lines], dtype=np.float32))
    return [lines[index] for index in sorted(chosen)]


def _lines(turn: Turn, *, also_polite: bool = False) -> list[Line]:
    every = bounded_sentences(turn.content)
    sentences = [sentence for sentence in every if also_polite or not is_polite_phrase(sentence)]
    return [Line(turn, sentence) for sentence in sentences if any(map(str.isalnum, sentence.text))]


def _sampled(lines: list[Line]) -> list[Line]:
    if len(lines) <= MAX_SENTENCES:
        return lines
    step = (len(lines) - 1) / (MAX_SENTENCES - 1)
    return [lines[round(index * step)] for index in range(MAX_SENTENCES)]


def _bonus(line: Line) -> float:
    fullness = min(len(lexical_terms(line.sentence.text, "und")), FULL_TERMS) / FULL_TERMS
    topics = min(len(find_topics(line.sentence.plain)), TOPICS) / TOPICS
    asked = QUESTION_LOSS * is_question(line.sentence)
    return FULLNESS_BONUS * fullness + TOPIC_BONUS * topics + USER_BONUS * (line.turn.role == "user") - asked


def _choose(matrix: Vector, bonus: Vector) -> list[int]:
    """Pick greedily: near the middle of the page, far from what is picked."""
    centroid = matrix.mean(axis=0)
    # Likenesses are scaled within the page: some embedders put every two sentences above 0.7.
    centrality = _scaled(matrix @ centroid)
    likeness = _scaled(matrix @ matrix.T)
    chosen: list[int] = []
    while len(chosen) < min(CHOSEN_SENTENCES, len(matrix)):
        repeated = likeness[:, chosen].max(axis=1) if chosen else np.zeros(len(matrix), dtype=np.float32)
        score = CENTRALITY * centrality + bonus - NOVELTY * repeated
        score[chosen] = -np.inf
        chosen.append(int(np.argmax(score)))
    return chosen


def _scaled(values: Vector) -> Vector:
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def show(lines: Sequence[Line]) -> str:
    """Return the lines as a summary: one a line, each after its speaker."""
    return "\n".join(f"{' '.join(line.turn.speaker.split())}: {_shortened(line.sentence.text)}" for line in lines)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN_CHARACTERS else f"{flat[: SHOWN_CHARACTERS - 1]}…"


def find_keywords(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return at most eight words of the page as they are written."""
    speakers = [turn.speaker for turn in turns]
    return surface_keywords([turn.content for turn in turns], limit=KEYWORDS, without=speakers)


def name_topics(turns: Sequence[Turn], keywords: Sequence[str]) -> tuple[str, ...]:
    """Return at most two topic codes, by how many sentences touch them; the first keyword when none is touched."""
    counts: dict[str, int] = {}
    for line in _sampled([line for turn in turns for line in _lines(turn)]):
        for topic in find_topics(line.sentence.plain):
            counts[topic] = counts.get(topic, 0) + 1
    best = sorted(counts, key=lambda topic: -counts[topic])[:TOPICS]
    return tuple(best) or tuple(keywords[:1])


def goes_on(page: PageText) -> bool:
    """Tell whether a page goes on with the page before it: in one sitting, or by many shared words.

    Within a sitting shared words say nothing (measured on neighbouring and on unrelated pages: the same share).
    """
    if not page.turns or not page.previous_turns:
        return False
    if page.turns[0].occurred_at - page.previous_turns[-1].occurred_at <= ONE_SITTING:
        return True
    now, before = (_terms(said_turns(turns)) for turns in (page.turns, page.previous_turns))
    shared = now & before
    return len(shared) >= SHARED_TERMS and len(shared) >= SHARED_SHARE * min(len(now), len(before))


def _terms(turns: Sequence[Turn]) -> set[str]:
    speakers = {term for turn in turns for term in lexical_terms(turn.speaker, "und")}
    terms = {term for turn in turns for term in lexical_terms(turn.content[:MAX_TERM_CHARACTERS], "und")}
    return {term for term in terms - speakers if len(term) > 1}
