"""When the system as a whole needs a person: a queue nobody takes from, a silent beat, a paused kind. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNSERVED_SECONDS = 30.0
STILL_SECONDS = 60.0
BEAT_PERIODS = 2.0
FULL_SHARE = 0.5
"""Of the broker's memory. Ours are kilobytes: what fills it are turns that nobody takes, or another application."""

QUEUE_UNSERVED = "queue_unserved"
QUEUE_STILL = "queue_still"
BEAT_SILENT = "beat_silent"
KIND_PAUSED = "kind_paused"
KIND_UNKNOWN = "kind_unknown"
BROKER_FULL = "broker_full"
BROKER_EVICTS = "broker_evicts"
WATCHED = (QUEUE_UNSERVED, QUEUE_STILL, BEAT_SILENT, KIND_PAUSED, KIND_UNKNOWN, BROKER_FULL, BROKER_EVICTS)
"""Every alarm the relay raises and takes back."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is wrong right now: what, about whom, and a sentence with what to do."""

    name: str
    subject: str
    sentence: str


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue as it was seen: messages in it, for how long there have been some, and whether anything of it moves.

    `is_moving` is None for a queue whose work leaves no trace on the ledger.
    """

    name: str
    depth: int
    deep_seconds: float
    is_served: bool
    is_moving: bool | None


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The memory of the broker, in bytes: what is used, what there is (0 is without a bound), and what it does then."""

    used_bytes: int
    most_bytes: int
    policy: str


def broker_alarms(broker: BrokerView) -> list[Alarm]:
    """Return an alarm when the broker will soon refuse messages, and one when it would rather throw some away."""
    alarms = []
    if broker.most_bytes and broker.used_bytes >= FULL_SHARE * broker.most_bytes:
        share = f"{broker.used_bytes / broker.most_bytes:.0%}"
        told = f"the broker uses {share} of its memory; start workers of queue ingest, or raise its maxmemory"
        alarms.append(Alarm(BROKER_FULL, "broker", told))
    if broker.most_bytes and broker.policy != "noeviction":
        told = f"a full broker would throw messages away ({broker.policy}); set its maxmemory-policy to noeviction"
        alarms.append(Alarm(BROKER_EVICTS, "broker", told))
    return alarms


def queue_alarms(queues: Iterable[QueueView]) -> list[Alarm]:
    """Return an alarm for each queue that holds messages and is not worked on."""
    return [alarm for queue in queues if (alarm := _queue_alarm(queue)) is not None]


def _queue_alarm(queue: QueueView) -> Alarm | None:
    if not queue.depth or queue.is_moving:
        return None
    held = f"queue {queue.name} has held messages for {queue.deep_seconds:.0f} s ({queue.depth} now)"
    if not queue.is_served and queue.deep_seconds >= UNSERVED_SECONDS:
        sentence = f"{held} and no worker serves it; start `memoryos worker --queues {queue.name}`"
        return Alarm(QUEUE_UNSERVED, queue.name, sentence)
    if queue.is_served and queue.is_moving is False and queue.deep_seconds >= STILL_SECONDS:
        return Alarm(QUEUE_STILL, queue.name, f"{held}; workers live, but take nothing of it: restart them")
    return None


def beat_alarms(silent_seconds: float, *, period_seconds: float) -> list[Alarm]:
    """Return an alarm when no sweep ran for more than two periods; the reaper does not depend on it."""
    if silent_seconds <= BEAT_PERIODS * period_seconds:
        return []
    sentence = (
        f"no sweep has run for {silent_seconds:.0f} s, with one due every {period_seconds:g} s; "
        f"look for `memoryos beat` and for a worker of queue maintenance"
    )
    return [Alarm(BEAT_SILENT, "beat", sentence)]


def pause_alarm(kind: str, *, reason: str) -> Alarm:
    """Return the alarm that stands while a kind is paused."""
    return Alarm(KIND_PAUSED, kind, f"{kind} work is paused: {reason}; `memoryos work resume {kind}` lets it go on")


def unknown_kind_alarms(kinds: Sequence[str]) -> list[Alarm]:
    """Return an alarm for each kind of work that this code does not know and leaves alone."""
    return [
        Alarm(KIND_UNKNOWN, kind, f"{kind} work waits for newer code; nobody here touches it: update relay and workers")
        for kind in kinds
    ]
