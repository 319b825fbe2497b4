"""What gives way when a scope holds too much: warm pages and statements, never young or pinned ones. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memoryos_pipeline.domain.policies import Evict, Policy, Victim


@dataclass(frozen=True, slots=True)
class WarmUnit:
    """A warm page as eviction sees it: heat right now, accesses ever, how far it has come."""

    page_id: UUID
    heat: float
    visits: int
    sealed_at: datetime
    pinned: bool = False
    handed: bool = False
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A live statement nobody pinned, as capacity sees it: whose side it is on, its weight right now in 0..1."""

    knowledge_id: UUID
    of_assistant: bool
    weight: float
    turn_at: datetime
    recorded_at: datetime


@dataclass(slots=True)
class Eviction:
    """What making room means: pages that are archived, and pages that are distilled before they are."""

    archive: list[UUID] = field(default_factory=list)
    extract_first: list[UUID] = field(default_factory=list)


ORDER: dict[Evict, Callable[[WarmUnit], tuple[Any, ...]]] = {
    "lowest_heat": lambda unit: (unit.heat, unit.sealed_at, unit.page_id),
    "lfu": lambda unit: (unit.visits, unit.sealed_at, unit.page_id),
    "oldest": lambda unit: (unit.sealed_at, unit.page_id),
}
"""Who goes first; of equals the older one."""


def plan_eviction(units: Sequence[WarmUnit], *, now: datetime, policy: Policy) -> Eviction:
    """Return which pages of a scope give way. One that is being distilled waits for it, and counts as gone."""
    plan, over = Eviction(), len(units) - policy.warm_capacity_pages
    if policy.evict == "none" or over <= 0:
        return plan
    min_age = timedelta(hours=policy.evict_min_age_hours)
    grown = [unit for unit in units if not unit.pinned and now - unit.sealed_at >= min_age]
    for unit in sorted(grown, key=ORDER[policy.evict])[:over]:
        if unit.extracted:
            plan.archive.append(unit.page_id)
        elif not unit.handed:
            plan.extract_first.append(unit.page_id)
    return plan


WEAKEST_FIRST: dict[Victim, Callable[[Statement], tuple[Any, ...]]] = {
    "oldest": lambda each: (each.turn_at, each.recorded_at, each.knowledge_id),
    "lowest_weight": lambda each: (each.weight, each.turn_at, each.recorded_at, each.knowledge_id),
}
"""Which statement goes first; of equals the older one."""


def plan_overflow(statements: Sequence[Statement], *, now: datetime, policy: Policy) -> list[UUID]:
    """Return which statements are too many: those beyond `knowledge_capacity` on the user's side, and the assistant's.

    By weight none goes before it is `evict_min_age_hours` old: what has just been learnt had no time to be used.
    """
    if policy.knowledge_capacity is None:
        return []
    by_weight = policy.capacity_victim == "lowest_weight"
    min_age = timedelta(hours=policy.evict_min_age_hours if by_weight else 0.0)
    over: list[UUID] = []
    for side in (False, True):
        members = [each for each in statements if each.of_assistant is side]
        grown = [each for each in members if now - each.recorded_at >= min_age]
        ranked = sorted(grown, key=WEAKEST_FIRST[policy.capacity_victim])
        over += [each.knowledge_id for each in ranked[: max(0, len(members) - policy.knowledge_capacity)]]
    return over
