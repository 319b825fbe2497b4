"""One page and one statement through simulated time: what a policy does to them, day by day. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from memoryos_pipeline.domain.forgetting import Hold, ends_at, expires_at, strengthened, weight
from memoryos_pipeline.domain.heat import Heat, Moment, cools_at, heat_at, is_cold_at, is_pinned, touch_at
from memoryos_pipeline.domain.policies import Policy

DAWN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Habit:
    """How a memory is used: every so many days (0 for never), until a day, among other retrievals, or turns, a day."""

    use_every_days: float = 0.0
    use_until_day: float = 1e9
    retrievals_per_day: int = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """How things stand at the end of a day: page heat 0..1, knowledge weight 0..1 (0 once it is forgotten)."""

    day: int
    heat: float
    weight: float


@dataclass(frozen=True, slots=True)
class Happening:
    """Something a policy did, and on which day, counted from 0."""

    day: float
    what: str


@dataclass(frozen=True, slots=True)
class Life:
    """What became of one page and one statement that began on day 0."""

    samples: tuple[Sample, ...]
    happenings: tuple[Happening, ...]


def simulate(policy: Policy, habit: Habit, *, days: int) -> Life:
    """Replay the rules of a policy on a page and a statement; the same functions the stages call."""
    page, statement = _Page(policy), _Statement(policy)
    samples: list[Sample] = []
    happenings: list[Happening] = []
    for day in range(days + 1):
        now = DAWN + day * DAY
        happenings += page.live_until(now, habit)
        happenings += statement.live_until(now, habit)
        samples.append(Sample(day, page.heat_now(now, habit), statement.weight_now(now)))
    return Life(tuple(samples), tuple(sorted(happenings, key=lambda each: each.day)))


def uses(habit: Habit, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the moments of use behind `after`, up to `until`."""
    if habit.use_every_days <= 0:
        return
    number = int((after - DAWN) / DAY / habit.use_every_days) + 1
    while (at := DAWN + timedelta(days=number * habit.use_every_days)) <= until:
        if (at - DAWN) / DAY <= habit.use_until_day:
            yield at
        number += 1


def _day(at: datetime) -> float:
    return round((at - DAWN) / DAY, 2)


class _Page:
    """A warm page, its heat and what is noticed about it."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._heat = Heat(1.0, DAWN)
        self._seen_until = DAWN
        self._cold = self._pinned = False

    def heat_now(self, now: datetime, habit: Habit) -> float:
        return heat_at(self._heat, self._moment(now, habit), self._policy)

    def live_until(self, now: datetime, habit: Habit) -> Iterator[Happening]:
        for at in uses(habit, self._seen_until, now):
            yield from self._look(at, habit)
            self._heat = touch_at(self._heat, self._moment(at, habit), self._policy)
            yield from self._turn_pin(at, habit, touched=True)
        yield from self._look(now, habit)
        yield from self._turn_pin(now, habit, touched=False)
        self._seen_until = now

    def _moment(self, at: datetime, habit: Habit) -> Moment:
        return Moment(at, int((at - DAWN) / DAY * habit.retrievals_per_day))

    def _look(self, now: datetime, habit: Habit) -> Iterator[Happening]:
        if self._cold or not is_cold_at(self._heat, self._moment(now, habit), sealed_at=DAWN, policy=self._policy):
            return
        self._cold = True
        closed = cools_at(self._heat, sealed_at=DAWN, policy=self._policy)
        at = closed if closed is not None and self._policy.heat == "ema_time" else now
        yield Happening(_day(at), "page cooled")

    def _turn_pin(self, now: datetime, habit: Habit, *, touched: bool) -> Iterator[Happening]:
        pinned = (self._pinned or touched) and is_pinned(
            self.heat_now(now, habit), was_pinned=self._pinned, policy=self._policy
        )
        if pinned != self._pinned:
            self._pinned = pinned
            yield Happening(_day(now), "page pinned" if pinned else "page unpinned")


class _Statement:
    """A statement learnt on day 0, as important as most are."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._hold = Hold("simulated", policy.strength_days, DAWN, importance=0.5, pinned=False)
        self._seen_until = DAWN
        self._gone_at: datetime | None = None
        self._purged = False

    def weight_now(self, now: datetime) -> float:
        if self._gone_at is not None:
            return 0.0
        if self._policy.forget == "none":
            return 1.0
        return weight(now, self._hold.last_reinforced_at, strength_days=self._hold.strength_days)

    def live_until(self, now: datetime, habit: Habit) -> Iterator[Happening]:
        for at in uses(habit, self._seen_until, now):
            yield from self._look(at)
            if self._gone_at is None:
                strength = strengthened(self._hold.strength_days, self._policy)
                self._hold = replace(self._hold, strength_days=strength, last_reinforced_at=at)
        yield from self._look(now)
        self._seen_until = now

    def _look(self, now: datetime) -> Iterator[Happening]:
        ends = [end for end in (ends_at(self._hold, self._policy), expires_at(DAWN, self._policy.ttl_days)) if end]
        if self._gone_at is None and ends and min(ends) <= now:
            self._gone_at = min(ends)
            yield Happening(_day(self._gone_at), "statement forgotten")
        grace = timedelta(days=self._policy.forget_grace_days)
        if self._gone_at is not None and not self._purged and self._gone_at + grace <= now:
            self._purged = True
            yield Happening(_day(self._gone_at + grace), "statement deleted")
