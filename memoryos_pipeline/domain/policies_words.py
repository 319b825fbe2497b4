"""A policy in words: half-lives and lifetimes as a person counts them. Pure."""

import math

from memoryos_pipeline.domain.forgetting import half_life_days, lifetime_days
from memoryos_pipeline.domain.heat import half_life_ticks, ticks_until_below
from memoryos_pipeline.domain.policies import Policy

HOURS_PER_DAY = 24.0
MINUTES_PER_HOUR = 60.0
DAYS_PER_YEAR = 365.25


def describe(policy: Policy) -> dict[str, str]:
    """Return a sentence for each stage of a memory's life."""
    return {
        "hot": _hot(policy),
        "pages": _pages(policy),
        "heat": _heat(policy),
        "distill": _distill(policy),
        "room": _room(policy),
        "forget": _forget(policy),
        "use": _use(policy),
        "end": _end(policy),
    }


def duration(days: float) -> str:
    """Return a length of time as a person says it: 115 days, 2.3 days, 6 hours, 30 minutes, 10 years."""
    if days >= 2 * DAYS_PER_YEAR:
        return _count(days / DAYS_PER_YEAR, "year")
    if days >= 1:
        return _count(days, "day")
    hours = days * HOURS_PER_DAY
    return _count(hours, "hour") if hours >= 1 else _count(hours * MINUTES_PER_HOUR, "minute")


def _count(number: float, unit: str) -> str:
    rounded = round(number) if number >= 10 else round(number, 1)
    return f"{rounded:g} {unit}{'' if rounded == 1 else 's'}"


def _hot(policy: Policy) -> str:
    idle = duration(policy.idle_flush_minutes / MINUTES_PER_HOUR / HOURS_PER_DAY)
    held = (
        f"{policy.hot_capacity_turns} turns" if policy.hot != "token_budget" else f"{policy.hot_capacity_tokens} tokens"
    )
    leaves = "one unit" if policy.hot == "fifo_one" else "the oldest page"
    return f"hot holds {held}; beyond that {leaves} leaves, and all of it after {idle} without a turn"


def _pages(policy: Policy) -> str:
    sizes = {
        "messages": _count(1 if policy.hot == "fifo_one" else policy.page_size_turns, "message"),
        "exchange": _count(1 if policy.hot == "fifo_one" else policy.page_size_exchanges, "exchange"),
        "tokens": f"up to {policy.page_size_tokens} tokens",
    }
    return f"a page is {sizes[policy.page_unit]}, less before a silence of {duration(policy.page_break_hours / 24)}"


def _heat(policy: Policy) -> str:
    if policy.heat == "ema_tick":
        half, cold = half_life_ticks(policy.alpha), ticks_until_below(1.0, policy.cool_below, alpha=policy.alpha)
        ticks = {"query": "retrievals", "turn": "turns of the user"}[policy.tick]
        return f"a page's heat halves in {half:.1f} {ticks}; one nobody reads is cold after {cold} {ticks}"
    cold_days = policy.heat_half_life_days * math.log2(1.0 / policy.cool_below)
    cold_days = max(cold_days, policy.min_warm_age_hours / HOURS_PER_DAY)
    half_life = duration(policy.heat_half_life_days)
    return f"a page's heat halves in {half_life}; one nobody reads is cold after {duration(cold_days)}"


def _distill(policy: Policy) -> str:
    causes = {
        "cooled": "when it is cold",
        "heated": f"when its segment has heat {policy.promote_at:g}",
        "either": f"when it is cold or its segment has heat {policy.promote_at:g}, whichever is first",
        "sealed": "as soon as it is in a segment",
    }
    return f"a page becomes knowledge {causes[policy.distill_when]}"


def _room(policy: Policy) -> str:
    victims = {"lowest_heat": "the coldest", "lfu": "the least used", "oldest": "the oldest"}
    if policy.evict == "none":
        return "warm pages have no limit"
    age = duration(policy.evict_min_age_hours / HOURS_PER_DAY)
    victim = victims[policy.evict]
    return f"of more than {policy.warm_capacity_pages} warm pages {victim} leaves, not before it is {age} old"


def _forget(policy: Policy) -> str:
    life, half = lifetime_days(policy), half_life_days(policy)
    if life is None:
        return "knowledge does not fade" if half is None else f"knowledge only loses rank: by half in {duration(half)}"
    average = " on average" if policy.forget == "stochastic" else ""
    fading = f"an untouched item lives {duration(life)}{average}; its weight halves in {duration(half or 0)}"
    floor = policy.importance_floor
    return fading if floor is None else f"{fading}; importance from {floor:g} does not fade"


def _use(policy: Policy) -> str:
    sign = {"retrieved": "being found", "injected": "being shown", "cited": "being cited"}[policy.reinforce_on]
    if lifetime_days(policy) is None:
        return f"{sign} warms a page; knowledge has nothing to gain"
    if policy.forget == "exp_rate" or (policy.reinforce_factor == 1 and policy.reinforce_step_days == 0):
        return f"{sign} starts its life again"
    step = f" and adds {duration(policy.reinforce_step_days)}" if policy.reinforce_step_days else ""
    factor = f"multiplies strength by {policy.reinforce_factor:g}{step}"
    longest = duration(lifetime_days(policy, strength_days=policy.strength_cap_days) or 0)
    return f"{sign} starts its life again and {factor}, up to a life of {longest}"


def _end(policy: Policy) -> str:
    grace = duration(policy.forget_grace_days) if policy.forget_grace_days else "no time"
    brake = f"a sweep that would take more than {policy.forget_brake_share:.0%} of a memory stops and alarms"
    limit = (
        "" if policy.ttl_days is None else f"used or not, an item ends {duration(policy.ttl_days)} after recording; "
    )
    kept = policy.knowledge_capacity
    victim = {"oldest": "the oldest", "lowest_weight": "the weakest"}[policy.capacity_victim]
    held = "" if kept is None else f"of more than {kept} statements of a side {victim} goes; "
    return f"{held}{limit}what is forgotten can be restored for {grace}; {brake}"
