"""Policies: frozen, validated choices and numbers with their units in the names. A preset is a named bundle of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

T = TypeVar("T")

Hot = Literal["fifo_batch", "fifo_one", "token_budget"]
PageUnit = Literal["messages", "exchange", "tokens"]
HeatLaw = Literal["ema_time", "ema_tick"]
Tick = Literal["query", "turn"]
Transition = Literal["cooled", "heated", "either", "sealed"]
Recency = Literal["hours", "paper", "constant"]
Reset = Literal["none", "L", "NL"]
Evict = Literal["none", "lowest_heat", "lfu", "oldest"]
Victim = Literal["oldest", "lowest_weight"]
ForgetLaw = Literal["exp_rate", "ebbinghaus_strength", "bounded_bias", "stochastic", "none"]
Cause = Literal["retrieved", "injected", "cited"]
Resolution = Literal["merge", "ops", "additive", "append"]
Graph = Literal["off", "entity_link", "triples"]
Ranking = Literal["default", "entities", "seed000", "bai_lab", "a_mem", "memorybank", "mem0"]
Rollups = Literal["none", "daily"]

CAUSES: tuple[Cause, ...] = get_args(Cause)
"""From the weakest sign of use to the strongest."""


def knob(default: T, says: str, *, choices: Any = None) -> T:
    """Declare one field of a policy: its default, and what it means in a sentence."""
    given: T = field(default=default, metadata={"says": says, "choices": get_args(choices)})
    return given


@dataclass(frozen=True, slots=True)
class Policy:
    """How one scope's memory moves and fades. Defaults are the preset `default`."""

    hot: Hot = knob("fifo_batch", "How turns leave the hot buffer.", choices=Hot)
    hot_capacity_turns: int = knob(12, "The hot buffer gives its oldest page away when it holds more turns than this.")
    hot_capacity_tokens: int = knob(1_500, "The same in tokens, under `token_budget`.")
    page_unit: PageUnit = knob("messages", "What a page is counted in.", choices=PageUnit)
    page_size_turns: int = knob(5, "Turns of a page of `messages`; under `fifo_one` a page is one unit.")
    page_size_exchanges: int = knob(1, "Exchanges of a page of `exchange`: what is said up to the next question.")
    page_size_tokens: int = knob(400, "Tokens a page of `tokens` holds at most, unless one turn is longer.")
    page_break_hours: float = knob(6.0, "A silence this long, by turn time, ends a page, and all before it leaves hot.")
    idle_flush_minutes: float = knob(
        30.0, "A conversation without a new turn for this long, by recorded time, is sealed."
    )

    heat: HeatLaw = knob("ema_time", "Whether page heat falls with time or with every tick.", choices=HeatLaw)
    tick: Tick = knob("query", "What a tick of `ema_tick` is: a retrieval, or a turn of the user.", choices=Tick)
    heat_half_life_days: float = knob(7.0, "Page heat halves in this time, under `ema_time`.")
    access_gain: float = knob(0.1, "An access lifts page heat by this share of what is missing to 1 (1 minus alpha).")
    cool_below: float = knob(0.3, "Page heat below which a page is cold.")
    min_warm_age_hours: float = knob(24.0, "A page is not cold before it is this old.")
    pin_at: float = knob(0.8, "Page heat from which a page that is read is shown in hot.")
    unpin_below: float = knob(0.6, "Page heat below which it leaves hot again.")

    segment_match: float = knob(0.6, "Cosine plus keyword Jaccard from which a page joins a segment.")
    segment_visit_weight: float = knob(1.0, "Segment heat of one visit.")
    segment_page_weight: float = knob(1.0, "Segment heat of one new page.")
    segment_recency_weight: float = knob(1.0, "Segment heat of being used right now.")
    segment_recency: Recency = knob(
        "hours", "How recency fades: exp(-hours/tau), exp(-seconds/mu), not at all.", choices=Recency
    )
    segment_recency_tau_hours: float = knob(24.0, "tau of the recency `hours`.")
    promote_at: float = knob(5.0, "Segment heat from which its waiting pages are distilled.")
    reset_on_extract: Reset = knob("NL", "Which counters of a segment start again after that.", choices=Reset)
    distill_when: Transition = knob("either", "What hands a page to distillation.", choices=Transition)
    evict: Evict = knob("none", "Which warm page gives way when there are too many.", choices=Evict)
    warm_capacity_pages: int = knob(2_000, "Warm pages of a scope at most, unless `evict` is none.")
    evict_min_age_hours: float = knob(24.0, "A page is not evicted before it is this old.")

    forget: ForgetLaw = knob("ebbinghaus_strength", "How knowledge fades.", choices=ForgetLaw)
    forget_below: float = knob(0.1, "Weight below which knowledge is forgotten.")
    strength_days: float = knob(50.0, "Weight falls to 1/e in this time (1 / rate per day).")
    reinforce_on: Cause = knob("injected", "The weakest sign of use that reinforces and warms.", choices=Cause)
    reinforce_factor: float = knob(1.5, "A reinforcement multiplies strength by this, ...")
    reinforce_step_days: float = knob(0.0, "... and adds this, ...")
    strength_cap_days: float = knob(365.0, "... up to this.")
    importance_floor: float | None = knob(0.8, "Knowledge at least this important does not decay; null for none.")
    ttl_days: float | None = knob(None, "Knowledge ends this long after it was recorded, used or not; null for never.")
    knowledge_capacity: int | None = knob(
        None, "Statements of the user, and as many of the assistant, kept at most; null for no limit."
    )
    capacity_victim: Victim = knob(
        "oldest", "Which statement goes when there are more: the one said first, or the weakest.", choices=Victim
    )
    forget_seed: int = knob(7, "Seed of the law `stochastic`.")
    bias_low: float = knob(0.3, "Rank bias of knowledge nobody uses, under `bounded_bias`.")
    bias_high: float = knob(1.5, "Rank bias of knowledge used all the time.")
    forget_grace_days: float = knob(30.0, "What is forgotten can be restored for this long, then it is deleted.")
    forget_brake_share: float = knob(0.05, "A sweep that would forget more of a scope than this stops and alarms.")
    forget_brake_min_rows: int = knob(20, "Below this many rows the brake share says nothing.")
    forget_brake_rest_hours: float = knob(1.0, "A braked scope is looked at again after this long, by wall clock.")

    resolution: Resolution = knob("ops", "What becomes of a statement beside what is known.", choices=Resolution)
    neighbour_floor: float = knob(
        0.5, "Nearness (cosine without what all statements share, plus Jaccard of terms) that asks for a verdict."
    )
    neighbours: int = knob(10, "Neighbours shown to the model that decides.")
    links_per_knowledge: int = knob(20, "Links of a statement at most; the weakest give way.")
    # Measured with the bundled embedder on the sample conversations: from 0.6 on a statement has 0.5 to 1 link in each
    # of the four languages, from 0.55 on 1 to 2.4, but most of those added share a time of day or a verb ending.
    link_floor: float = knob(0.6, "The same nearness, from which statements are linked.")
    graph: Graph = knob("entity_link", "Whether statements become entities, and relations between them.", choices=Graph)
    evolution_neighbours: int = knob(5, "Neighbours whose notes a new statement may annotate; 0 for none.")
    rollups: Rollups = knob("none", "Whether days and the whole are summarized.", choices=Rollups)
    ranking: Ranking = knob("default", "The scoring profile of recall.", choices=Ranking)

    def __post_init__(self) -> None:
        for name, problem in _problems(self):
            message = f"{name} {problem}"
            raise ValueError(message)

    @property
    def alpha(self) -> float:
        """Share of EMA heat that is kept at a tick or an access."""
        return 1.0 - self.access_gain

    @property
    def ticks_by_turn(self) -> bool:
        """Whether page heat falls with every turn of the user."""
        return self.heat == "ema_tick" and self.tick == "turn"

    @property
    def rate_per_day(self) -> float:
        """Decay rate of knowledge nobody uses."""
        return 1.0 / self.strength_days

    @property
    def counted_causes(self) -> frozenset[str]:
        """Causes of access that reinforce and warm: `reinforce_on` and whatever is a stronger sign."""
        return frozenset(CAUSES[CAUSES.index(self.reinforce_on) :])


SHARES = (
    "cool_below", "pin_at", "unpin_below", "access_gain", "forget_below", "forget_brake_share",
)  # fmt: skip
POSITIVE = (
    "page_size_turns", "page_size_exchanges", "page_size_tokens", "heat_half_life_days", "strength_days",
    "segment_recency_tau_hours", "page_break_hours", "warm_capacity_pages", "strength_cap_days", "neighbours",
)  # fmt: skip
NOT_NEGATIVE = (
    "idle_flush_minutes", "min_warm_age_hours", "evict_min_age_hours", "segment_visit_weight", "segment_page_weight",
    "segment_recency_weight", "reinforce_step_days", "forget_grace_days", "forget_brake_min_rows",
    "forget_brake_rest_hours", "links_per_knowledge", "evolution_neighbours",
)  # fmt: skip


def _problems(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a policy, as a field's name and what it must be."""
    for each in fields(policy):
        choices = each.metadata["choices"]
        if choices and getattr(policy, each.name) not in choices:
            yield each.name, f"must be one of {', '.join(choices)}"
    yield from ((name, "must be above 0 and at most 1") for name in SHARES if not 0 < getattr(policy, name) <= 1)
    yield from ((name, "must be above 0") for name in POSITIVE if not getattr(policy, name) > 0)
    yield from ((name, "must not be negative") for name in NOT_NEGATIVE if not getattr(policy, name) >= 0)
    yield from _joint_problems(policy)


def _joint_problems(policy: Policy) -> Iterator[tuple[str, str]]:
    is_batch = policy.page_unit == "messages" and policy.hot == "fifo_batch"
    smallest = policy.page_size_turns if is_batch else 1
    if policy.hot_capacity_turns < smallest:
        yield "hot_capacity_turns", f"must be at least page_size_turns ({smallest})"
    if policy.page_unit == "tokens" and policy.hot == "fifo_one":
        yield "page_unit", "must be messages or exchange under fifo_one"
    if policy.hot == "token_budget" and policy.hot_capacity_tokens < policy.page_size_tokens:
        yield "hot_capacity_tokens", "must be at least page_size_tokens"
    if policy.unpin_below > policy.pin_at:
        yield "unpin_below", "must not be above pin_at"
    if policy.importance_floor is not None and not 0 < policy.importance_floor <= 1:
        yield "importance_floor", "must be above 0 and at most 1, or null"
    if policy.knowledge_capacity is not None and policy.knowledge_capacity < 1:
        yield "knowledge_capacity", "must be at least 1, or null"
    if policy.ttl_days is not None and not policy.ttl_days > 0:
        yield "ttl_days", "must be above 0, or null"
    if policy.reinforce_factor < 1:
        yield "reinforce_factor", "must be at least 1"
    if not 0 < policy.bias_low <= policy.bias_high:
        yield "bias_low", "must be above 0 and at most bias_high"


DEFAULT = Policy()
