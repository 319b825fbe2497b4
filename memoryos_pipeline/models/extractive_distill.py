"""Distils a page by rules: sentences stay verbatim, with their date and speaker in front."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memoryos_pipeline.domain.knowledge import Candidate, KnowledgeKind, TraitDelta
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.pages import PageText
from memoryos_pipeline.domain.statements import (
    Sentence,
    bounded_sentences,
    is_planted,
    is_question,
    leaves_speaker_out,
    names_first_person,
    states_something,
)
from memoryos_pipeline.domain.statements_dates import EventTime, resolve_event
from memoryos_pipeline.domain.statements_ends import names_somebody, says_it_is_over
from memoryos_pipeline.domain.statements_slots import Slot, find_dated_event, find_own_name, find_slot, is_own_at
from memoryos_pipeline.domain.statements_topics import (
    Correction,
    find_correction,
    find_entities,
    find_ties,
    find_topics,
    topic_importance,
)
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.models.surface import surface_keywords

MAX_SENTENCES_OF_A_TURN = 400
"""Sentences looked at in one turn; of more, an even sample that holds the first and the last."""
MAX_CANDIDATES = 40
KEEP_FROM_SCORE = 3
WEIGHTY = 0.6
"""Topics from this importance on count once more: health, family, home, pets, work."""
FEWEST_WORDS = {"en": 5, "und": 3}
FEWEST_CHARACTERS = {"ja": 9, "ko": 8, "zh": 6}
"""What is shorter says too little alone, unless it sets a slot or corrects something."""
DATED_SHARE = 0.6
"""Of these, when it says on which day something weighty happens: "I have surgery tomorrow" is all there is to say."""
CORRECTION_IMPORTANCE = 0.92
ASSISTANT_IMPORTANCE = 0.3
ADVICE_CHARACTERS = {"en": 40, "und": 40, "ja": 16, "ko": 18, "zh": 14}


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with everything the rules see in it."""

    turn: Turn
    sentence: Sentence
    lang: str
    topics: tuple[str, ...]
    slot: Slot | None
    correction: Correction | None
    event: EventTime | None
    entities: tuple[tuple[str, str], ...]

    @property
    def ends_something(self) -> bool:
        """Whether who speaks says that something of theirs is over."""
        text, lang = self.sentence.plain, self.lang
        names_it = names_first_person(self.sentence) or re.search(r"(?<!^)\b[A-Z][a-z]+", text) is not None
        is_theirs = lang in ("ja", "ko") or (names_it and is_own_at(text, len(text), lang))
        return is_theirs and says_it_is_over(text, lang) and not names_somebody(text, lang)

    @property
    def score(self) -> int:
        """How much there is to keep; what reaches KEEP_FROM_SCORE is kept."""
        marks = (
            3 * (self.slot is not None or self.correction is not None or self.ends_something),
            2 * (self.event is not None),
            min(2, len(self.topics)) + (topic_importance(self.topics) >= WEIGHTY),
            _is_own(self),
            _weight_of_names(self.entities),
            bool(re.search(r"\d", self.sentence.plain)),
        )
        return sum(int(mark) for mark in marks)


def _weight_of_names(entities: tuple[tuple[str, str], ...]) -> int:
    """A person of theirs by name weighs more than any other name."""
    return 2 if any(kind == "person" for _, kind in entities) else int(bool(entities))


def distill_statements(page: PageText) -> tuple[Candidate, ...]:
    """Return the candidates of a page in the order they were said, at most 40, the fullest kept."""
    statements = [statement for turn in page.turns for statement in _of_user(turn)]
    kept = [statement for statement in statements if statement.score >= KEEP_FROM_SCORE and _is_full(statement)]
    strongest = sorted(kept, key=lambda statement: -statement.score)[:MAX_CANDIDATES]
    chosen = {id(statement) for statement in strongest}
    candidates = [to_candidate(statement) for statement in kept if id(statement) in chosen]
    unique = {candidate.content: candidate for candidate in (*candidates, *_of_assistant(page))}
    return tuple(sorted(unique.values(), key=lambda candidate: candidate.source_seqs))


def find_traits(candidates: Sequence[Candidate]) -> tuple[TraitDelta, ...]:
    """Return what the candidates say about the profile of who spoke: one delta a topic, with its evidence."""
    evidence: dict[tuple[str, str], list[int]] = defaultdict(list)
    for ordinal, candidate in enumerate(candidates):
        if candidate.kind != "assistant_kb":
            for topic in candidate.attributes.get("topics", ()):
                evidence[candidate.actor, topic].append(ordinal)
    return tuple(
        TraitDelta(actor, topic, _level(candidates, ordinals), min(0.9, 0.4 + 0.1 * len(ordinals)), tuple(ordinals))
        for (actor, topic), ordinals in sorted(evidence.items())
    )


def _level(candidates: Sequence[Candidate], ordinals: Sequence[int]) -> str:
    """Name the latest slot among the evidence, or only that the topic came up."""
    for ordinal in reversed(ordinals):
        slot, value = candidates[ordinal].slot, candidates[ordinal].slot_value
        if slot and value:
            name = " ".join(slot.split("|")[1:])
            return f"{name}: {value}"
    return "mentioned"


def to_candidate(statement: Statement) -> Candidate:
    """Make a candidate of a statement: verbatim, dated, with its slot when it has one."""
    turn, slot = statement.turn, statement.slot
    return Candidate(
        kind=_kind(statement),
        content=dated_line(turn, statement.sentence.text),
        lang=statement.lang,
        actor=turn.speaker,
        source_seqs=(turn.seq,),
        turn_at=turn.occurred_at,
        importance=_importance(statement),
        slot=f"{turn.speaker.casefold()}|{slot.attribute}" if slot else None,
        slot_value=slot.value if slot else None,
        negated=slot.negated if slot else False,
        keywords=surface_keywords([statement.sentence.text], limit=6),
        entities=statement.entities,
        event_at=statement.event.at if statement.event else None,
        event_precision=statement.event.precision if statement.event else None,
        attributes=_attributes(statement),
    )


def dated_line(turn: Turn, text: str) -> str:
    """Return a sentence with the day it was said, in the turn's own offset, and who said it."""
    speaker = " ".join(turn.speaker.split())
    return f"[{turn.occurred_at.date().isoformat()}] {speaker}: {' '.join(text.split())}"


def _is_full(statement: Statement) -> bool:
    if statement.slot or statement.correction or statement.ends_something:
        return True
    text, lang = statement.sentence.plain, statement.lang
    is_dated = statement.event is not None and topic_importance(statement.topics) >= WEIGHTY
    share = DATED_SHARE if is_dated else 1.0
    if lang in FEWEST_CHARACTERS:
        return sum(character.isalnum() for character in text) >= share * FEWEST_CHARACTERS[lang]
    return len(text.split()) >= share * FEWEST_WORDS[lang]


def _attributes(statement: Statement) -> dict[str, object]:
    attributes: dict[str, object] = {"topics": list(statement.topics)} if statement.topics else {}
    if ties := find_ties(statement.sentence.text):
        attributes["ties"] = ties
    if statement.correction and statement.correction.wrong:
        attributes |= {"wrong": statement.correction.wrong, "right": statement.correction.right}
    return attributes


def _kind(statement: Statement) -> KnowledgeKind:
    if statement.correction:
        return "correction"
    return "event" if statement.event and not statement.slot else "fact"


def _importance(statement: Statement) -> float:
    if statement.correction:
        return CORRECTION_IMPORTANCE
    if statement.slot:
        return statement.slot.importance
    return topic_importance(statement.topics)


def _is_own(statement: Statement) -> bool:
    is_dropped_subject = statement.lang in ("ja", "ko") and leaves_speaker_out(statement.sentence.plain, statement.lang)
    return is_dropped_subject or names_first_person(statement.sentence)


def _of_user(turn: Turn) -> Iterator[Statement]:
    if turn.role != "user" or turn.kind != "normal":
        return
    for sentence in _sampled(bounded_sentences(turn.content)):
        if states_something(sentence):
            yield _statement(turn, sentence)


def _statement(turn: Turn, sentence: Sentence) -> Statement:
    lang = detect_language(sentence.text)
    event = resolve_event(sentence.plain, turn.occurred_at)
    slot = (
        find_own_name(sentence.plain, turn.speaker, lang)
        or find_slot(sentence.plain, lang)
        or find_dated_event(sentence.plain, event.at if event else None, turn.occurred_at)
    )
    return Statement(
        turn, sentence, lang, find_topics(sentence.plain), slot, find_correction(sentence.text), event,
        find_entities(sentence.text, turn.speaker),
    )  # fmt: skip


def _sampled(sentences: list[Sentence]) -> list[Sentence]:
    count = len(sentences)
    if count <= MAX_SENTENCES_OF_A_TURN:
        return sentences
    step = (count - 1) / (MAX_SENTENCES_OF_A_TURN - 1)
    return [sentences[round(index * step)] for index in range(MAX_SENTENCES_OF_A_TURN)]


def _of_assistant(page: PageText) -> list[Candidate]:
    """Keep at most one statement of the assistant a page: the fullest sentence that answers a question."""
    before = (*page.previous_turns[-1:], *page.turns)
    answers = [
        (turn, sentence)
        for asked, turn in pairwise(before)
        if turn in page.turns and _answers(asked, turn)
        for sentence in bounded_sentences(turn.content)[:MAX_SENTENCES_OF_A_TURN]
        if _is_advice(sentence)
    ]
    if not answers:
        return []
    turn, sentence = max(answers, key=lambda answer: len(answer[1].plain))
    return [_assistants_word(turn, sentence)]


def _answers(asked: Turn, turn: Turn) -> bool:
    is_pair = asked.role == "user" and turn.role == "assistant" and turn.kind == asked.kind == "normal"
    return is_pair and any(is_question(sentence) for sentence in bounded_sentences(asked.content[-2_000:]))


def _is_advice(sentence: Sentence) -> bool:
    long_enough = len(sentence.plain) >= ADVICE_CHARACTERS[detect_language(sentence.text)]
    return long_enough and not (is_question(sentence) or is_planted(sentence.text) or names_first_person(sentence))


def _assistants_word(turn: Turn, sentence: Sentence) -> Candidate:
    return Candidate(
        kind="assistant_kb",
        content=dated_line(turn, sentence.text),
        lang=detect_language(sentence.text),
        actor=turn.speaker,
        source_seqs=(turn.seq,),
        turn_at=turn.occurred_at,
        importance=ASSISTANT_IMPORTANCE,
        keywords=surface_keywords([sentence.text], limit=6),
    )
