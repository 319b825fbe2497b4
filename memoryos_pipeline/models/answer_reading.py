"""Turns answers of the right shape into knowledge, checking every item against what the model was shown."""

import calendar
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from uuid import UUID

from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.knowledge import (
    Candidate,
    Decision,
    Distillate,
    EventPrecision,
    KnowledgeKind,
    Neighbour,
    TraitDelta,
    Verdict,
)
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.relations import RELATIONS
from memoryos_pipeline.domain.statements import is_planted
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.models.answer_grounding import holds_what_nobody_said
from memoryos_pipeline.models.answer_relations import read_relations
from memoryos_pipeline.models.answer_shapes import (
    DistillAnswer,
    RelatedStatementAnswer,
    ResolveAnswer,
    StatementAnswer,
    VerdictAnswer,
)
from memoryos_pipeline.models.lexical import lexical_terms

_DATE_PREFIX = re.compile(r"^\[\d{4}-\d{2}-\d{2}\] ")
_NAMES_A_NEIGHBOUR = frozenset({"UPDATE", "CLOSE", "NOOP"})


def read_statements(
    answer: DistillAnswer, turns: Sequence[Turn], *, model: str, last_try: bool = True
) -> Distillate:  # fmt: skip
    """Return the statements that stand on the turns they cite.

    Raises InvalidOutputError for turns never shown, and for relations of what the page does not name; before the
    last try also for a number or an address no cited turn has. A statement that has one still, shares no word with
    its turns, or whose turn gives orders, is not kept.
    """
    by_seq = {turn.seq: turn for turn in turns}
    ordinals: dict[int, int] = {}
    candidates: list[Candidate] = []
    for index, statement in enumerate(answer.statements):
        sources = [_source(seq, by_seq) for seq in dict.fromkeys(statement.source_turns)]
        if _is_made_up(statement, sources):
            if not last_try:
                message = f"statement {index} has a number or an address that its turns do not: keep them as they stand"
                raise InvalidOutputError(message)
            continue
        if _is_grounded(statement, sources):
            ordinals[index] = len(candidates)
            candidates.append(_related(_candidate(statement, sources), statement, turns))
    return Distillate(tuple(candidates), _traits(answer, ordinals, turns), model)


def _related(candidate: Candidate, statement: StatementAnswer, turns: Sequence[Turn]) -> Candidate:
    """Return the candidate with its triples, where the model was asked for any."""
    if not isinstance(statement, RelatedStatementAnswer):
        return candidate
    entities, triples = read_relations(statement, turns)
    given = [list(astuple(triple)) for triple in triples]
    return replace(candidate, entities=entities, attributes={**candidate.attributes, RELATIONS: given})


def _source(seq: int, by_seq: dict[int, Turn]) -> Turn:
    if seq not in by_seq:
        message = f"a statement cites turn {seq}, which was not shown"
        raise InvalidOutputError(message)
    return by_seq[seq]


def _is_made_up(statement: StatementAnswer, sources: Sequence[Turn]) -> bool:
    said = (f"{turn.speaker} {turn.content} {turn.occurred_at.isoformat()}" for turn in sources)
    return holds_what_nobody_said(_DATE_PREFIX.sub("", statement.content), said)


def _is_grounded(statement: StatementAnswer, sources: Sequence[Turn]) -> bool:
    said = " ".join(f"{turn.content} {turn.occurred_at.isoformat()}" for turn in sources)
    names = {term for turn in sources for term in lexical_terms(turn.speaker, "und")}
    words = set(lexical_terms(_DATE_PREFIX.sub("", statement.content), "und")) - names
    return bool(words & set(lexical_terms(said, "und"))) and not is_planted(statement.content)


def _candidate(statement: StatementAnswer, sources: Sequence[Turn]) -> Candidate:
    first = min(sources, key=lambda turn: turn.seq)
    actor = statement.actor if statement.actor in {turn.speaker for turn in sources} else first.speaker
    event = _event(statement.event_date, first.occurred_at)
    has_slot = bool(statement.slot and statement.slot_value)
    day = first.occurred_at.date().isoformat()
    return Candidate(
        kind=_kind(statement, sources),
        content=f"[{day}] {_DATE_PREFIX.sub('', statement.content)}",
        lang=detect_language(statement.content),
        actor=actor,
        source_seqs=tuple(sorted(turn.seq for turn in sources)),
        turn_at=max(turn.occurred_at for turn in sources),
        importance=statement.importance,
        slot=f"{actor.casefold()}|{str(statement.slot).casefold()}" if has_slot else None,
        slot_value=str(statement.slot_value).casefold() if has_slot else None,
        negated=statement.negated,
        keywords=tuple(statement.keywords),
        entities=tuple((entity.name, entity.type) for entity in statement.entities),
        event_at=event[0] if event else None,
        event_precision=event[1] if event else None,
    )


def _kind(statement: StatementAnswer, sources: Sequence[Turn]) -> KnowledgeKind:
    """What only the assistant said is the assistant's, whatever the model calls it."""
    if all(turn.role == "assistant" for turn in sources):
        return "assistant_kb"
    return "fact" if statement.kind == "assistant_kb" else statement.kind


def _event(text: str | None, said_at: datetime) -> tuple[datetime, EventPrecision] | None:
    if text is None:
        return None
    year, month, day = (*map(int, text.split("-")), 1, 1)[:3]
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        message = f"{text} is not a date"
        raise InvalidOutputError(message)
    precision: EventPrecision = ("year", "month", "day")[text.count("-")]
    return datetime(year, month, day, tzinfo=said_at.tzinfo), precision


def _traits(answer: DistillAnswer, ordinals: dict[int, int], turns: Sequence[Turn]) -> tuple[TraitDelta, ...]:
    """Keep the deltas that name a speaker and cite at least one kept statement."""
    speakers = {turn.speaker for turn in turns if turn.role == "user"}
    deltas = []
    for trait in answer.traits:
        evidence = tuple(ordinals[index] for index in dict.fromkeys(trait.evidence) if index in ordinals)
        if evidence and trait.actor in speakers:
            deltas.append(TraitDelta(trait.actor, trait.dimension, trait.level, trait.confidence, evidence))
    return tuple(deltas)


@dataclass(frozen=True, slots=True)
class Offered:
    """The closed map of small numbers a model may name, per new statement."""

    neighbours: tuple[dict[int, Neighbour], ...]

    @classmethod
    def number(cls, neighbours: Sequence[Sequence[Neighbour]]) -> "Offered":
        """Number the neighbours through, so that a number means one of them under one statement."""
        maps, counter = [], 0
        for near in neighbours:
            maps.append(dict(enumerate(near, start=counter)))
            counter += len(near)
        return cls(tuple(maps))


def read_verdicts(
    answer: ResolveAnswer, candidates: Sequence[Candidate], offered: Offered, *, last_try: bool
) -> list[Verdict]:
    """Return one verdict a candidate. Raises InvalidOutputError for a missing one or a number never offered.

    On the last try a number never offered costs only that decision: the statement is kept beside what is known.
    """
    by_statement = {verdict.statement: verdict for verdict in answer.verdicts}
    if sorted(by_statement) != list(range(len(candidates))) or len(answer.verdicts) != len(candidates):
        message = f"verdicts on {sorted(by_statement)[:20]} instead of one for each of {len(candidates)} statements"
        raise InvalidOutputError(message)
    return [
        _verdict(by_statement[index], candidate, offered.neighbours[index], last_try=last_try)
        for index, candidate in enumerate(candidates)
    ]


def _verdict(answer: VerdictAnswer, candidate: Candidate, offered: dict[int, Neighbour], *, last_try: bool) -> Verdict:
    is_named = answer.neighbour is not None and answer.neighbour in offered
    is_wrong = (answer.neighbour is not None or answer.decision in _NAMES_A_NEIGHBOUR) and not is_named
    if is_wrong and not last_try:
        message = f"the verdict on statement {answer.statement} names {answer.neighbour}, which is not shown under it"
        raise InvalidOutputError(message)
    if is_wrong:
        return Verdict(Decision.COEXIST, reason="the model named knowledge it was not shown")
    neighbour = offered[answer.neighbour] if is_named and answer.neighbour is not None else None
    retires = answer.decision in {"UPDATE", "CLOSE"}
    is_late = retires and neighbour is not None and candidate.turn_at < neighbour.turn_at
    neighbour_id: UUID | None = neighbour.knowledge_id if neighbour else None
    return Verdict(Decision(answer.decision), neighbour_id, reason=answer.reason, arrived_late=is_late)
