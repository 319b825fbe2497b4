"""Publishes turns as they were lived: recorded time steps through the turns' own dates.

Knows no command line and no database; what it pulls is given to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Protocol

SWEEP_EVERY = timedelta(days=7)

TurnBody = dict[str, Any]


class Publishes(Protocol):
    """Whatever gets turns recorded: the HTTP client, or a publisher that waits for receipts."""

    def add_turns(self, turns: Sequence[TurnBody]) -> object: ...


@dataclass(frozen=True, slots=True)
class Levers:
    """What the driver pulls. Each returns when its effect stands."""

    clock: Callable[[datetime], object]
    """Hold recorded time at a moment."""
    sweep: Callable[[], object]
    """Owe the flush, heat and forget work that is due by recorded time."""
    wait: Callable[[], object]
    """Return once nothing is owed. Raises when that takes too long."""
    progress: Callable[["Step"], object] = lambda _: None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of lived time: where the clock stands, what was published in it, and whether sweeps ran."""

    at: datetime
    turns: int
    published: int
    total: int
    swept: bool


def publish_as_lived(
    client: Publishes, turns: Sequence[TurnBody], *, levers: Levers, until: datetime | None = None
) -> int:
    """Publish turns day by day over all conversations, the clock held at each day's last turn.

    Sweeps run and the pipeline drains each lived week, silent weeks included, and at the end, which is
    the last turn or `until` if later. The clock is left there. Returns how many turns were published.
    """
    lived = _Life(client, levers, total=len(turns))
    for moment, day in _days(turns):
        lived.pass_weeks_before(moment)
        lived.publish(moment, day)
    if until is not None and lived.at is not None and until > lived.at:
        lived.pass_weeks_before(until)
        lived.at = until
    lived.end()
    return lived.published


class _Life:
    """Where lived time stands. Sweeps always see a drained pipeline at the moment they are dated."""

    def __init__(self, client: Publishes, levers: Levers, *, total: int) -> None:
        self._client, self._levers, self._total = client, levers, total
        self._swept_at: datetime | None = None
        self.at: datetime | None = None
        self.published = 0

    def pass_weeks_before(self, moment: datetime) -> None:
        if self._swept_at is None:
            self._swept_at = moment
        while moment - self._swept_at >= SWEEP_EVERY:
            self._sweep(self._swept_at + SWEEP_EVERY)

    def publish(self, moment: datetime, day: list[TurnBody]) -> None:
        self._levers.clock(moment)
        self._client.add_turns(day)
        self.at = moment
        self.published += len(day)
        self._tell(moment, turns=len(day), swept=False)

    def end(self) -> None:
        if self.at is not None:
            self._sweep(self.at)

    def _sweep(self, moment: datetime) -> None:
        if self.at is not None:
            self._levers.wait()
        self._levers.clock(moment)
        self._levers.sweep()
        self._levers.wait()
        self._swept_at = moment
        self._tell(moment, turns=0, swept=True)

    def _tell(self, moment: datetime, *, turns: int, swept: bool) -> None:
        self._levers.progress(Step(moment, turns, self.published, self._total, swept))


def _days(turns: Sequence[TurnBody]) -> Iterator[tuple[datetime, list[TurnBody]]]:
    """Yield each day's last moment and its turns; a conversation's own order is kept whatever its dates say."""
    dated, newest = [], dict[tuple[str, str, str], datetime]()
    for turn in turns:
        conversation = (turn["user_id"], turn["agent_id"], turn["conversation_id"])
        said = datetime.fromisoformat(turn["occurred_at"]).astimezone(UTC)
        newest[conversation] = max(said, newest.get(conversation, said))
        dated.append((newest[conversation], turn))
    dated.sort(key=lambda pair: pair[0])
    for _, day in groupby(dated, key=lambda pair: pair[0].date()):
        today = list(day)
        yield today[-1][0], [turn for _, turn in today]
