"""A long run of faults under load: kills of every kind, emptied brokers, restarted databases, in an order of chance."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.work import QUEUE_OF_KIND, Owed, WorkKind
from memoryos_pipeline.faults.checking import Verdict, check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal, read_journal
from memoryos_pipeline.faults.members import POLL_SECONDS, Member
from memoryos_pipeline.faults.recovery import Orphans, Spans, freeze_at_work, restart_database, wipe_broker
from memoryos_pipeline.faults.traffic import Traffic
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.fault_figures import count_executions, owner_of_kind
from memoryos_pipeline.store.clock import freeze_clock, read_now
from memoryos_pipeline.store.ledger import owe

WORKERS = ("ingest,maintenance", "summarize,embed", "heat,forget", "distill,merge")
"""Queues of the workers; two processes serve each entry, so that eight can be killed."""
PROCESSES_AN_ENTRY = 2
KINDS = tuple(str(kind) for kind in STAGES if kind != WorkKind.MERGE_PAGE)
"""Kinds of work that arise by themselves; a page is put back in line by a person."""
RELAYS = 2
"""One goes on while another is started again."""
MOST_OWED = 600
"""Callers hold back while more work is owed than this, so that faults meet turns on their way in to the end."""
AHEAD_TURNS = 200
PAST_LEASE_SECONDS = 2.0
LOOK_SECONDS = 0.5
AIM_SECONDS = 3.0
AIM_POLL_SECONDS = 0.005
CLOCK_STEPS, CLOCK_STEP_DAYS = 12, 15
AGENT = "companion"
ONCE_KINDS = (WorkKind.SUMMARIZE, WorkKind.EMBED, WorkKind.DISTILL)
"""Kinds of which every row stands for one effect."""
DRAIN_SECONDS = 600.0
NARROW = {"relay_window": "12", "relay_batch": "4"}
"""As few messages as keep eight workers busy: what a dead worker held does not stand in a long line again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of what; the same seed gives the same turns and the same order of faults, not the same instants."""

    turns: int
    kills: int
    flushes: int
    database_restarts: int
    seed: int
    freezes: int = 0


def order_of_faults(plan: Plan) -> list[str]:
    """Return every fault in the order it happens: kills by kind as evenly as can be, all shuffled by the seed."""
    targets = [*KINDS, "ingest", "relay", "api"]
    kills = [targets[n % len(targets)] for n in range(plan.kills)]
    faults = [*kills, *["flush"] * plan.flushes, *["database"] * plan.database_restarts]
    faults += ["freeze"] * plan.freezes
    Random(plan.seed).shuffle(faults)  # noqa: S311 - repeatable on purpose
    return faults


@dataclass
class Tally:
    """What was done and how long it took to get over it."""

    kills: Counter[str] = field(default_factory=Counter)
    held_at_death: Counter[str] = field(default_factory=Counter)
    flushes: int = 0
    database_restarts: int = 0
    freezes: int = 0
    broker: Spans = field(default_factory=Spans)
    database: Spans = field(default_factory=Spans)


class Campaign:
    """One run. `run` returns its figures."""

    def __init__(self, cluster: Cluster, plan: Plan, *, say: Callable[[str], None] = lambda _: None) -> None:
        self._cluster = cluster
        self._plan = plan
        self._say = say
        self._chance = Random(plan.seed)  # noqa: S311 - repeatable on purpose
        self._journal = ClientJournal(cluster.ground.directory / "journal.jsonl")
        self._orphans = Orphans(cluster)
        self._tally = Tally()
        self._workers: list[Member] = []
        self._relays: list[Member] = []
        self._next_look = 0.0

    def run(self) -> dict[str, Any]:
        """Send everything while the faults happen, spread over the turns; drain; check."""
        with closing(self._journal):
            return self._run()

    def _run(self) -> dict[str, Any]:
        begun = time.monotonic()
        self._start()
        with Traffic(self._cluster, self._journal, turns=self._plan.turns, seed=self._plan.seed) as traffic:
            self._break_things(traffic)
            traffic.limit = sys.maxsize
            self._go_on_until(lambda: traffic.is_over, traffic)
            self._go_on_until(lambda: not self._orphans.is_waiting, traffic)
        self._cluster.drain(DRAIN_SECONDS)
        self._orphans.look()
        verdict = check(self._cluster, self._journal.path)
        return self._figures(verdict, traffic, seconds=time.monotonic() - begun)

    def _start(self) -> None:
        self._relays = [self._cluster.add_relay(f"relay-{number}") for number in range(RELAYS)]
        for member in (self._cluster.add_api(), self._cluster.add_beat(), *self._relays):
            member.start()
        for number in range(PROCESSES_AN_ENTRY):
            for queues in WORKERS:
                name = f"worker-{queues.replace(',', '-')}-{number}"
                self._workers.append(self._cluster.add_worker(name, queues=queues, concurrency=1).start())
        for member in (self._cluster.members["api"], *self._workers):
            member.ready()

    def _break_things(self, traffic: Traffic) -> None:
        faults = order_of_faults(self._plan)
        for number, fault in enumerate(faults):
            enough = self._plan.turns * number // len(faults)
            traffic.limit = enough + self._plan.turns // len(faults) + AHEAD_TURNS
            self._go_on_until(lambda enough=enough: traffic.sent >= enough, traffic)  # type: ignore[misc]
            self._say(f"{number + 1}/{len(faults)} {fault} after {traffic.sent} turns")
            self._strike(fault, traffic)
            if number % max(1, len(faults) // CLOCK_STEPS) == 0:
                self._step_clock()

    def _step_clock(self) -> None:
        """Let half a month pass for what is remembered (not for leases): pages cool and knowledge fades."""
        with self._cluster.owner.across_tenants() as connection:
            freeze_clock(connection, read_now(connection) + timedelta(days=CLOCK_STEP_DAYS))

    def _strike(self, fault: str, traffic: Traffic) -> None:
        if fault in ("flush", "database"):
            # Each is timed alone: a row that waits for its lease to run out would be counted for the wrong fault.
            self._go_on_until(lambda: not self._orphans.is_waiting, traffic)
        if fault == "flush":
            self._tally.broker.seconds += wipe_broker(self._cluster)
            self._tally.flushes += 1
        elif fault == "database":
            at_once = self._tally.database_restarts % 2 == 1
            self._tally.database.seconds.append(restart_database(self._cluster, at_once=at_once))
            self._tally.database_restarts += 1
        elif fault == "freeze":
            self._freeze(traffic)
        else:
            self._kill(fault, traffic)
            self._tally.kills[fault] += 1

    def _freeze(self, traffic: Traffic) -> None:
        """Stop a worker with work in hand until its lease is over and others are at it; then let it go on."""
        deadline = time.monotonic() + AIM_SECONDS
        while time.monotonic() < deadline:
            victim = self._chance.choice([member for member in self._workers if member.is_running])
            if freeze_at_work(self._cluster, victim):
                self._tally.freezes += 1
                self._go_on_for(self._lease_seconds + PAST_LEASE_SECONDS, traffic)
                victim.thaw()
                return
            victim.thaw()
            time.sleep(AIM_POLL_SECONDS)

    @property
    def _lease_seconds(self) -> float:
        return float(self._cluster.environment()["MEMORYOS_LEASE_SECONDS"])

    def _kill(self, target: str, traffic: Traffic) -> None:
        if target in ("relay", "api"):
            self._chance.choice(self._relays if target == "relay" else [self._cluster.members["api"]]).restart()
            return
        if target == WorkKind.FORGET:
            self._owe_forgetting(traffic)
        served = [member for member in self._workers if _serves(member, target)]
        victim, held = self._kill_at_work(target, served, traffic) or self._kill_any(served)
        self._tally.held_at_death.update(held or ["nothing"])
        victim.start()

    def _kill_at_work(self, kind: str, served: Sequence[Member], traffic: Traffic) -> tuple[Member, list[str]] | None:
        """Kill a worker while it holds a row of a kind; None when none did within a moment."""
        deadline = time.monotonic() + AIM_SECONDS
        while kind in KINDS and time.monotonic() < deadline:
            self._keep_house(traffic)
            with self._cluster.ledger.across_tenants() as connection:
                pid = owner_of_kind(connection, kind)
            for victim in served:
                if victim.is_running and victim.pid == pid:
                    held = self._orphans.kill(victim, at_work_on=kind)
                    if held is not None:
                        return victim, held
            time.sleep(AIM_POLL_SECONDS)
        return None

    def _kill_any(self, served: Sequence[Member]) -> tuple[Member, list[str]]:
        victim = self._chance.choice([member for member in served if member.is_running])
        return victim, self._orphans.kill(victim) or []

    def _owe_forgetting(self, traffic: Traffic) -> None:
        """Let memories be looked through for what has faded: by themselves they would be in months."""
        tenant_id = self._cluster.tenant_id
        scopes = sorted({scope_id(tenant_id, user, AGENT) for user in traffic.users[-40:]})
        with self._cluster.app.transaction(tenant_id) as connection:
            owe(connection, tenant_id, [_forgetting(scope) for scope in scopes])

    def _go_on_for(self, seconds: float, traffic: Traffic) -> None:
        until = time.monotonic() + seconds
        self._go_on_until(lambda: time.monotonic() >= until, traffic)

    def _go_on_until(self, claim: Callable[[], bool], traffic: Traffic) -> None:
        """Keep house until a claim holds: start the dead again, hold callers back or let them go, time recoveries."""
        while not claim():
            self._cluster.tend()
            self._keep_house(traffic)
            time.sleep(POLL_SECONDS)

    def _keep_house(self, traffic: Traffic) -> None:
        self._orphans.look()
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_SECONDS
        if sum(self._cluster.owed().values()) < MOST_OWED and traffic.sent < traffic.limit:
            traffic.open.set()
        else:
            traffic.open.clear()

    def _figures(self, verdict: Verdict, traffic: Traffic, *, seconds: float) -> dict[str, Any]:
        with self._cluster.ledger.across_tenants() as connection:
            executions, effects = count_executions(connection, self._cluster.tenant_id, [str(k) for k in ONCE_KINDS])
        tally, known = self._tally, read_journal(self._journal.path)
        return {
            "seed": self._plan.seed,
            "embedder": "hashing",
            "language_model": "extractive",
            "seconds": round(seconds, 1),
            "turns": len(known),
            "turns_by_queue": traffic.by_queue,
            "acknowledged": verdict.acknowledged,
            "kills": tally.kills.total(),
            "kills_by_kind": dict(sorted(tally.kills.items())),
            "rows_held_at_death": dict(sorted(tally.held_at_death.items())),
            "flushes": tally.flushes,
            "database_restarts": tally.database_restarts,
            "freezes": tally.freezes,
            "lost": len(verdict.lost),
            "unexpected": len(verdict.unexpected),
            "doubled": len(verdict.duplicated) + len(verdict.doubled_effects),
            "recovered": verdict.recovered,
            "violations": len(verdict.violations),
            "dead": verdict.dead,
            "wrongs": verdict.wrongs(),
            "effects": effects,
            "executions_per_effect": round(executions / effects, 4) if effects else None,
            "fenced_completions": self._cluster.count_written('"work_fenced"'),
            "lease_seconds": self._lease_seconds,
            "recovery_seconds": {
                "worker_kill": self._orphans.offered.figures(),
                "worker_kill_taken_over": self._orphans.taken.figures(),
                "broker_wipe": tally.broker.figures(),
                "database_restart": tally.database.figures(),
            },
        }


def _forgetting(scope: UUID) -> Owed:
    return Owed(WorkKind.FORGET, str(scope), scope)


def _serves(member: Member, target: str) -> bool:
    queues = member.words[member.words.index("--queues") + 1].split(",")
    return next((queue for kind, queue in QUEUE_OF_KIND.items() if kind == target), target) in queues
