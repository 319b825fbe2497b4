"""Relations between entities: what a statement of a slot, or of somebody of theirs, says as a triple. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memoryos_pipeline.domain.knowledge import Candidate

SPEAKER = "speaker"
RELATIONS = "relations"
"""Attribute under which a model that was asked for triples gives them: lists of five strings, perhaps none."""
_OF_ONE_VALUE = {
    "residence": ("lives_in", "place"), "employer": ("works_for", "organization"), "occupation": ("works_as", "job"),
    "car": ("drives", "thing"), "drink": ("drinks", "thing"), "commute": ("commutes_by", "thing"),
}  # fmt: skip
_OF_MANY = {
    "attitude": ("likes", "thing"), "plan": ("plans", "place"), "pet": ("has_pet", "pet"), "habit": ("does", "thing"),
    "allergy": ("is_allergic_to", "thing"),
}  # fmt: skip
MENTIONS = "knows"


@dataclass(frozen=True, slots=True)
class Triple:
    """Source, relation, target. The type of a person says what they are to the speaker, where it is known.

    So two people of one name stay two.
    """

    source: str
    source_type: str
    name: str
    target: str
    target_type: str

    @property
    def ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Both ends, each a name and a type."""
        return (self.source, self.source_type), (self.target, self.target_type)


def triples_of(candidate: Candidate) -> tuple[Triple, ...]:
    """Return what a statement relates: what its model gave, or else what follows from its slot and whom it names."""
    if RELATIONS in candidate.attributes:
        return tuple(dict.fromkeys(Triple(*given) for given in candidate.attributes[RELATIONS]))
    return tuple(dict.fromkeys((*_of_slot(candidate), *_of_people(candidate))))


def are_triples(attributes: Mapping[str, Any]) -> bool:
    """Tell whether what a model gave as relations can be read as that; having given none is fine."""
    given = attributes.get(RELATIONS, [])
    return isinstance(given, list) and all(
        isinstance(one, list) and len(one) == len(Triple.__slots__) and all(map(_is_name, one)) for one in given
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= 200


def _of_slot(candidate: Candidate) -> Iterator[Triple]:
    parts = (candidate.slot or "").split("|")
    if len(parts) < 2 or candidate.negated or not candidate.slot_value:
        return
    if len(parts) == 2 and parts[1] in _OF_ONE_VALUE:
        name, kind = _OF_ONE_VALUE[parts[1]]
        yield Triple(candidate.actor, SPEAKER, name, candidate.slot_value, kind)
    elif parts[1] in _OF_MANY and parts[2] != "none":
        name, kind = _OF_MANY[parts[1]]
        yield Triple(candidate.actor, SPEAKER, name, parts[2], kind)


def _of_people(candidate: Candidate) -> Iterator[Triple]:
    ties = candidate.attributes.get("ties") or {}
    for name, kind in candidate.entities:
        if kind == "person":
            yield Triple(candidate.actor, SPEAKER, MENTIONS, name, str(ties.get(name) or kind))
