"""Reads what a model relates: every end of a relation is a speaker or an entity that the page names."""

from collections.abc import Collection, Sequence

from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.relations import SPEAKER, Triple
from memoryos_pipeline.domain.turns import Turn
from memoryos_pipeline.models.answer_shapes import RelatedStatementAnswer
from memoryos_pipeline.models.lexical import lexical_terms, normalize_text

OF_SPEAKERS = frozenset({SPEAKER, "user", "person", "self", "assistant"})
"""What a model calls the type of somebody who speaks; a namesake of theirs has another."""

Named = tuple[str, str]
"""A name as it was written, and its type."""


def read_relations(
    statement: RelatedStatementAnswer, turns: Sequence[Turn]
) -> tuple[tuple[Named, ...], tuple[Triple, ...]]:
    """Return the entities and the triples of a statement. Raises InvalidOutputError for a triple that does not stand.

    The error counts relations from 0 and quotes nothing: it is kept where conversations are not.
    """
    page = _Page(turns)
    entities = tuple(page.typed(entity.name, entity.type) for entity in statement.entities)
    known = {_compared(named) for named in entities}
    triples: dict[Triple, None] = {}
    for number, relation in enumerate(statement.relations):
        source = page.typed(relation.source, relation.source_type)
        target = page.typed(relation.target, relation.target_type)
        problem = "its statement is negated" if statement.negated else page.problem(source, target, known)
        if problem:
            message = f"relation {number} of a statement that cites turn {statement.source_turns[0]}: {problem}"
            raise InvalidOutputError(message)
        triples[Triple(*source, relation.name, *target)] = None
    return entities, tuple(triples)


def _compared(named: Named) -> Named:
    return normalize_text(named[0]), named[1]


class _Page:
    """What may be named: the speakers of a page, and whatever its turns say."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        said = " ".join(f"{turn.speaker} {turn.content}" for turn in turns)
        self._speakers = {normalize_text(turn.speaker) for turn in turns}
        self._said = normalize_text(said)
        self._terms = set(lexical_terms(said, "und"))

    def typed(self, name: str, kind: str) -> Named:
        """Return a name with its type; a speaker under any of the usual words is a speaker."""
        is_speaker = normalize_text(name) in self._speakers and kind in OF_SPEAKERS
        return name, SPEAKER if is_speaker else kind

    def problem(self, source: Named, target: Named, known: Collection[Named]) -> str | None:
        """Return why two ends cannot be related; None when they can."""
        ends = {"source": _compared(source), "target": _compared(target)}
        if ends["source"] == ends["target"]:
            return "its source is its target"
        for place, (name, kind) in ends.items():
            if kind == SPEAKER and name not in self._speakers:
                return f"its {place} does not speak on this page"
            if kind != SPEAKER and (name, kind) not in known:
                return f"its {place} is not among the entities of its statement, by name and type"
            if not self._names(name):
                return f"its {place} is named by no turn"
        return None

    def _names(self, name: str) -> bool:
        return name in self._said or bool(set(lexical_terms(name, "und")) & self._terms)
