"""Which warm pages give way when a scope holds too many: never young, pinned or unread ones. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memoryos_pipeline.domain.policies import Evict, Policy


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
