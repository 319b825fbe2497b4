"""Policies: frozen, validated numbers with their units in the names. A preset is a named bundle of them."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """How one scope's memory moves and fades. Defaults are the preset `default`."""

    hot_capacity_turns: int = 12
    """The hot buffer seals its oldest page when it holds more turns than this."""
    page_size_turns: int = 5
    page_break_hours: float = 6.0
    """A silence this long between two turns (by turn time) ends a page, and everything before it leaves hot."""
    idle_flush_minutes: float = 30.0
    """A conversation without a new turn for this long (by recorded time) has its whole hot buffer sealed."""
    distill_when: Literal["cooled", "heated", "either", "sealed"] = "either"
    heat_half_life_days: float = 7.0
    cool_below: float = 0.3
    min_warm_age_hours: float = 24.0
    pin_at: float = 0.8
    unpin_below: float = 0.6
    access_gain: float = 0.1
    """An access lifts EMA heat by this share of what is missing to 1 (1 minus alpha)."""
    segment_match: float = 0.6
    """Cosine plus keyword Jaccard from which a page joins a segment."""
    promote_at: float = 5.0
    """Linear segment heat (visits + pages + recency) from which its pages are distilled."""
    segment_recency_tau_hours: float = 24.0
    forget_below: float = 0.1
    strength_days: float = 50.0
    reinforce_factor: float = 1.5
    strength_cap_days: float = 365.0
    importance_floor: float = 0.8
    """Knowledge at least this important (who somebody is, health, family, corrections) is not forgotten by decay."""
    forget_grace_days: float = 30.0
    forget_brake_share: float = 0.05
    """A sweep that would forget more of a scope than this stops and alarms."""
    forget_brake_min_rows: int = 20
    """Below this many rows the brake share says nothing."""
    forget_brake_rest_hours: float = 1.0
    """A scope that is braked or on hold is looked at again by the sweep after this long (by wall clock)."""
    neighbour_floor: float = 0.5
    """Nearness (cosine without what all statements share, plus Jaccard of terms) from which a verdict is asked for."""
    neighbours: int = 10
    links_per_knowledge: int = 20
    link_floor: float = 0.6
    """The same nearness, from which statements are linked; measured with the bundled embedder on the sample
    conversations: from 0.6 on a statement has 0.5 to 1 link in each of the four languages, from 0.55 on 1 to 2.4, but
    most of those added share no more than a time of day or a verb ending."""

    def __post_init__(self) -> None:
        if self.page_size_turns < 1 or self.hot_capacity_turns < self.page_size_turns:
            message = "hot_capacity_turns must be at least page_size_turns, and that at least 1"
            raise ValueError(message)
        for name in ("cool_below", "pin_at", "unpin_below", "access_gain", "forget_below", "importance_floor"):
            if not 0 < getattr(self, name) <= 1:
                message = f"{name} must be above 0 and at most 1"
                raise ValueError(message)


DEFAULT = Policy()
