"""What becomes of candidates beside their neighbours: equal text and slots decide, nearness never. Pure."""

import unicodedata
from collections.abc import Sequence

from memoryos_pipeline.domain.knowledge import Candidate, Decision, Neighbour, Verdict
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.links import is_dated, said_words
from memoryos_pipeline.domain.statements_ends import (
    find_thing,
    known_thing,
    names_somebody,
    says_it_is_over,
)
from memoryos_pipeline.domain.statements_slots import find_slots, is_own_at


def decide(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict:
    """Return the verdict on one candidate; the first rule that applies decides."""
    own = [neighbour for neighbour in neighbours if neighbour.actor == candidate.actor]
    for rule in (_repeat, _all_denied, _same_slot, _opposed, _ended, _corrected):
        verdict = rule(candidate, own)
        if verdict is not None:
            return verdict
    return Verdict(Decision.ADD, reason="nothing known about it")


def bears_on(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Tell whether one of the two says that the known thing of the other is over, or the opposite of it."""
    if neighbour.actor != candidate.actor:
        return False
    return (
        _is_ended_by(candidate, neighbour)
        or _is_over_since(candidate, neighbour)
        or (_are_of_food(candidate.slot, neighbour.slot) and _opposed(candidate, [neighbour]) is not None)
    )


def comparable(content: str) -> str:
    """Return a statement's words as compared: without its date, forms and case folded, letters and digits only."""
    said = content.partition("] ")[2] if is_dated(content) else content
    folded = unicodedata.normalize("NFKC", said).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


def _repeat(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict | None:
    """The same words, unless they place another event (a weekly "I ran today" is not one run)."""
    words = comparable(candidate.content)
    for neighbour in neighbours:
        same_event = candidate.event_at == neighbour.event_at
        if words and same_event and candidate.slot == neighbour.slot and comparable(neighbour.content) == words:
            return Verdict(Decision.NOOP, neighbour.knowledge_id, reason="the same words")
    return None


def _same_slot(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict | None:
    rivals = [neighbour for neighbour in neighbours if candidate.slot and neighbour.slot == candidate.slot]
    if not rivals:
        return None
    rival = max(rivals, key=lambda neighbour: neighbour.turn_at)
    if rival.slot_value == candidate.slot_value:
        return Verdict(Decision.NOOP, rival.knowledge_id, reason="the same value")
    if candidate.turn_at < rival.turn_at:
        return Verdict(Decision.ADD, reason="said before what is known now", arrived_late=True)
    if _has_passed(rival, candidate):
        return Verdict(Decision.COEXIST, rival.knowledge_id, reason="an event of its own date")
    decision = Decision.CLOSE if candidate.negated else Decision.UPDATE
    return Verdict(decision, rival.knowledge_id, reason="denied" if candidate.negated else "a newer value")


def _has_passed(rival: Neighbour, candidate: Candidate) -> bool:
    is_dated = bool(candidate.slot) and "|date|" in str(candidate.slot)
    return is_dated and rival.event_at is not None and rival.event_at < candidate.turn_at


def _all_denied(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict | None:
    """ "I have no allergies" ends each allergy; an allergy ends "I have no allergies"."""
    slot = candidate.slot or ""
    group, _, name = slot.rpartition("|")
    if name == "none":
        rivals = [n for n in neighbours if (n.slot or "").startswith(f"{group}|") and n.slot != slot]
    elif group:
        rivals = [n for n in neighbours if n.slot == f"{group}|none" and not candidate.negated]
    else:
        rivals = []
    older = [neighbour for neighbour in rivals if neighbour.turn_at <= candidate.turn_at]
    if not older:
        return None
    return Verdict(Decision.CLOSE, max(older, key=lambda n: n.turn_at).knowledge_id, reason="denied")


def _opposed(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict | None:
    """Two statements of several things each ("meat and fish", "fish and clams") that differ about one of them."""
    if candidate.slot is None:
        return None
    now = _things(candidate.content, candidate.actor, candidate.lang)
    for neighbour in sorted(neighbours, key=lambda n: -n.similarity):
        if neighbour.slot is None:
            continue
        lang = detect_language(said_words(neighbour.content, neighbour.actor))
        before = _things(neighbour.content, neighbour.actor, lang)
        if any(now[thing] != before[thing] for thing in now.keys() & before.keys()):
            late = neighbour.turn_at > candidate.turn_at
            return Verdict(Decision.CLOSE, neighbour.knowledge_id, reason="no longer so", arrived_late=late)
    return None


def _ended(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict | None:
    """A statement that something is over ends the known thing it names, in whatever words; told late, it is history."""
    for neighbour in sorted(neighbours, key=lambda n: -n.similarity):
        late = neighbour.turn_at > candidate.turn_at
        if _is_ended_by(candidate, neighbour):
            return Verdict(Decision.CLOSE, neighbour.knowledge_id, reason="no longer so", arrived_late=late)
        if late and _is_over_since(candidate, neighbour):
            return Verdict(Decision.CLOSE, neighbour.knowledge_id, reason="over by now", arrived_late=True)
    return None


def _are_of_food(*slots: str | None) -> bool:
    """Tell whether all slots are of what somebody eats: a diet says something of each food."""
    return all((slot or "").split("|")[1:2] in (["diet"], ["eats"]) for slot in slots)


def _is_ended_by(candidate: Candidate, neighbour: Neighbour) -> bool:
    held = known_thing(neighbour.slot, neighbour.slot_value)
    return held is not None and _ends(candidate.content, candidate.actor, candidate.lang, thing=held)


def _is_over_since(candidate: Candidate, neighbour: Neighbour) -> bool:
    held = known_thing(candidate.slot, candidate.slot_value)
    return held is not None and _ends(neighbour.content, neighbour.actor, candidate.lang, thing=held)


def _ends(content: str, actor: str, lang: str, *, thing: str) -> bool:
    said = said_words(content, actor)
    at = find_thing(said, thing, lang)
    return at >= 0 and says_it_is_over(said, lang) and not names_somebody(said, lang) and is_own_at(said, at, lang)


def _things(content: str, actor: str, lang: str) -> dict[str, str]:
    slots = find_slots(said_words(content, actor), lang)
    return {slot.attribute: slot.value for slot in slots if "|" in slot.attribute}


def _corrected(candidate: Candidate, neighbours: Sequence[Neighbour]) -> Verdict | None:
    """A correction that names the wrong word ends the older statement that holds it and not the right one."""
    wrong, right = (comparable(str(candidate.attributes.get(key) or "")) for key in ("wrong", "right"))
    if candidate.kind != "correction" or not wrong or not right:
        return None
    for neighbour in sorted(neighbours, key=lambda n: -n.similarity):
        words = comparable(neighbour.content)
        if neighbour.turn_at <= candidate.turn_at and wrong in words and right not in words:
            return Verdict(Decision.CLOSE, neighbour.knowledge_id, reason="corrected")
    return None
