"""Lets a pipeline in this process live the generated lives: real Postgres, every stage, a clock that is held."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from memoryos_pipeline.domain.ids import derive_id, scope_id
from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.turns import NewTurn
from memoryos_pipeline.embedded.temporary import temporary_postgres
from memoryos_pipeline.evaluation.conflicts import Count, Scorer
from memoryos_pipeline.evaluation.corpus import AGENT, DAYS, START, Corpus, Line
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.protocols import Embedder
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.known import Known, load_known
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_turns import close_conversation, record_turns
from memoryos_pipeline.store.clock import freeze_clock
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import Ledger
from memoryos_pipeline.store.publishing import pick_due
from memoryos_pipeline.store.sweeps import owe_due
from memoryos_pipeline.store.tenants import create_tenant

TENANT = derive_id("tenant", "evaluation")
"""Ids follow from it, and what is equal otherwise is ordered by id: the same lives come to the same figures."""
AFTER = START + timedelta(days=DAYS + 60)
COOLING = timedelta(days=30)
"""More than a page takes to cool, and less than unimportant knowledge takes to be forgotten."""
BATCH = 500
ROOM = 200
LEASE_SECONDS = 600.0
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Every part of a pipeline, worked by whoever holds it; `kinds` is the work that is done, the rest stays owed."""

    parts: Parts
    ledger_database: Database
    owner: Database
    tenant_id: UUID
    kinds: Collection[str] = tuple(STAGES)

    def live(self, lines: Sequence[Line], *, now: datetime, advanced: Callable[[int], object]) -> None:
        """Record turns, close what was talked about, and let a month pass, until nothing is owed."""
        self.record(lines, now=now, advanced=advanced)
        for user_id, conversation in dict.fromkeys((line.user_id, line.conversation_id) for line in lines):
            scope = scope_id(self.tenant_id, user_id, AGENT)
            close_conversation(
                self.parts.database, self.tenant_id, scope_id=scope, conversation_id=conversation,
                max_attempts=MAX_ATTEMPTS,
            )  # fmt: skip
        self.drain()
        self._hold(now + COOLING)
        owe_due(self.ledger_database, policy=self.parts.policy)
        self.drain()

    def record(self, lines: Sequence[Line], *, now: datetime, advanced: Callable[[int], object]) -> None:
        """Record turns at a moment; whoever records owes their work and does none of it."""
        self._hold(now)
        for start in range(0, len(lines), BATCH):
            part = [_turn(line) for line in lines[start : start + BATCH]]
            policy = self.parts.policy
            record_turns(self.parts.database, self.tenant_id, part, policy=policy, max_attempts=MAX_ATTEMPTS)
            advanced(len(part))

    def drain(self) -> None:
        """Do what is owed until nothing is. Raises whatever a stage raises."""
        ledger = Ledger(self.ledger_database)
        while sum(self._work(ledger, kind) for kind in self.kinds):
            pass

    def known(self) -> list[Known]:
        """Return all that was learned."""
        with self.parts.database.transaction(self.tenant_id) as connection:
            return load_known(connection, self.tenant_id)

    def _work(self, ledger: Ledger, kind: str) -> int:
        with self.ledger_database.across_tenants() as connection:
            due = pick_due(connection, kind, room=ROOM, share=ROOM, stale_seconds=LEASE_SECONDS)
        leases = ledger.claim(due.get(self.tenant_id, []), owner="evaluation", lease_seconds=LEASE_SECONDS)
        for lease in leases:
            STAGES[lease.kind](self.parts, lease)
        return len(leases)

    def _hold(self, now: datetime) -> None:
        with self.owner.across_tenants() as connection:
            freeze_clock(connection, now)


@contextmanager
def own_pipeline(
    embedder: Embedder, *, policy: Policy = DEFAULT, kinds: Collection[str] = tuple(STAGES)
) -> Iterator[Pipeline]:
    """Start a temporary database and yield a pipeline over it. Raises EmbeddedServerError."""
    with temporary_postgres(settings={"fsync": "off"}) as server:
        app, ledger, owner = (Database(server.url(role), pool_size=2) for role in ("app", "ledger", "owner"))
        create_tenant(owner, TENANT, "evaluation")
        parts = Parts(app, embedder, ExtractiveModel(embedder), policy, MAX_ATTEMPTS)
        yield Pipeline(parts, ledger, owner, TENANT, kinds)
        for database in (app, ledger, owner):
            database.dispose()


def live_through(
    pipeline: Pipeline, corpora: Sequence[Corpus], *, advanced: Callable[[int], object]
) -> list[tuple[Corpus, dict[str, Count]]]:
    """Let every corpus be lived and return the counts of each; what is late comes in after everything else."""
    lines = [line for corpus in corpora for line in corpus.lines]
    pipeline.live(_by_time(line for line in lines if not line.late), now=AFTER, advanced=advanced)
    pipeline.live(_by_time(line for line in lines if line.late), now=AFTER + COOLING, advanced=advanced)
    known = pipeline.known()
    return [(corpus, Scorer(corpus, known).counts()) for corpus in corpora]


def _by_time(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.at)


def _turn(line: Line) -> NewTurn:
    return NewTurn(
        user_id=line.user_id,
        agent_id=AGENT,
        conversation_id=line.conversation_id,
        client_turn_id=line.turn_id,
        role=line.role,
        speaker=line.speaker,
        content=line.text,
        occurred_at=line.at,
    )
