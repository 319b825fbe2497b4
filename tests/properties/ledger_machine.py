"""A machine that does to a ledger and its store whatever can be done, in any order, and knows what must be the case.

Three workers with connections of their own, real stages, a broker that may be emptied, users who are erased, a clock
that is stepped. After each step the rows are those of a plain model and no invariant is broken; at the end everything
that is owed gets done.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from redis import Redis
from sqlalchemy import text

from memoryos_pipeline.domain.errors import (
    ErasedScopeError,
    FencedError,
    NotFoundError,
    StaleReadError,
    TurnConflictError,
)
from memoryos_pipeline.domain.ids import conversation_id, mint_id, scope_id
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.turns import NewTurn, Receipt
from memoryos_pipeline.domain.work import ErrorClass, Lease, decide_retry
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.pipeline import STAGES
from memoryos_pipeline.readmodels.invariants import find_violations
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_access import record_access
from memoryos_pipeline.stages.record_turns import close_conversation, record_turns
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.store.clock import freeze_clock
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.dead_letters import discard, replay
from memoryos_pipeline.store.erasure import erase_user
from memoryos_pipeline.store.ledger import Ledger
from memoryos_pipeline.store.publishing import reap_expired
from memoryos_pipeline.store.repair import repair_tenant
from memoryos_pipeline.store.sweeps import owe_due
from memoryos_pipeline.store.tenants import create_tenant
from tests.conftest import Stack
from tests.properties.ledger_model import MAX_ATTEMPTS, Model, Work
from workers.relay import Relay

BEGINNING = datetime(2026, 3, 1, 9, tzinfo=UTC)
USERS, CONVERSATIONS = ("maya", "li", "jun"), ("c1", "c2")
SAID = (
    "I live in Porto.", "I moved to Kyoto last week.", "My dog is called Miso.", "I am allergic to peanuts.",
    "京都に住んでいます。", "猫を飼っています。", "저는 서울에 살아요.", "저는 커피를 좋아해요.",
    "我住在上海。", "我喜欢喝茶。",
)  # fmt: skip
SMALL = Policy(hot_capacity_turns=2, page_size_turns=2, min_warm_age_hours=1.0, forget_brake_min_rows=1000)
STEPS_HOURS = (-2, 1, 7, 24, 24 * 9, 24 * 70, 24 * 200)
MAX_ROUNDS = 60

WORK = text("""
    select work_id, kind, subject_key, state, generation, fence, attempts, executions,
           state = 'leased' and lease_until < clock_timestamp() as is_overdue
      from memoryos.work where tenant_id = :tenant_id
""")
TURNS = text("""
    select s.user_id, c.external_id, array_agg(t.client_turn_id order by t.seq), array_agg(t.seq order by t.seq)
      from memoryos.turn t
      join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
      join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
     where t.tenant_id = :tenant_id group by s.user_id, c.external_id
""")
FINGERPRINT = text("""
    select (select count(*) from memoryos.event where tenant_id = :tenant_id),
           (select coalesce(sum(version), 0) from memoryos.page where tenant_id = :tenant_id),
           (select count(*) from memoryos.knowledge where tenant_id = :tenant_id),
           (select count(*) from memoryos.embedding where tenant_id = :tenant_id),
           (select count(*) from memoryos.candidate where tenant_id = :tenant_id),
           (select coalesce(sum(lock_version), 0) from memoryos.scope where tenant_id = :tenant_id)
""")
RUN_OUT = text("""
    update memoryos.work set lease_until = clock_timestamp() - interval '1 second'
     where tenant_id = :tenant_id and work_id = :work_id and state = 'leased'
""")
OWNERS = text("""
    select scope_id, 'page' as kind, page_id as id from memoryos.page where tenant_id = :tenant_id
    union all select scope_id, 'knowledge', knowledge_id from memoryos.knowledge where tenant_id = :tenant_id
    order by 2, 3
""")
FORGOTTEN = text("""
    select knowledge_id from memoryos.knowledge
     where tenant_id = :tenant_id and status = 'forgotten' order by knowledge_id
""")
TEXT_COLUMNS = text("""
    select table_name, string_agg(format('coalesce(%I::text, '''')', column_name), ' || ') as columns
      from information_schema.columns
     where table_schema = 'memoryos' and data_type in ('text', 'jsonb', 'ARRAY')
       and table_name in (select c.relname from pg_class c where c.relnamespace = 'memoryos'::regnamespace
                                                             and c.relkind = 'r')
       and table_name in (select table_name from information_schema.columns
                           where table_schema = 'memoryos' and column_name = 'tenant_id')
     group by table_name
""")
DROP_TENANT = text("delete from memoryos.tenant where tenant_id = :tenant_id")
Number = st.integers(min_value=0, max_value=10_000)


@dataclass
class Worker:
    """One session of its own, and the leases it believes to hold."""

    app: Database
    ledger: Ledger
    database: Database
    leases: list[Lease] = field(default_factory=list)


@dataclass
class World:
    """What all runs of the machine share: a database, a broker, the sessions."""

    stack: Stack
    broker: Redis
    workers: tuple[Worker, ...]
    columns: dict[str, str]

    def close(self) -> None:
        """Close the sessions."""
        for worker in self.workers:
            worker.app.dispose()
            worker.database.dispose()


def open_world(stack: Stack, broker: Redis) -> World:
    """Open three sessions over a database."""
    workers = []
    for _ in range(3):
        database = Database(stack.url("ledger"), pool_size=1)
        workers.append(Worker(Database(stack.url("app"), pool_size=1), Ledger(database), database))
    with stack.owner.across_tenants() as connection:
        columns = {row.table_name: row.columns for row in connection.execute(TEXT_COLUMNS)}
    return World(stack, broker, tuple(workers), columns)


class LedgerMachine(RuleBasedStateMachine):
    """The ledger, the stages and everything that can happen to them."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.stack = world, world.stack
        self.model = Model()
        self.tenant_id = mint_id()
        self.now = BEGINNING
        self.messages: list[list[int]] = []
        self.sent: dict[tuple[str, str, str], tuple[NewTurn, Receipt]] = {}
        self.gave_up = False
        self.embedder = HashingEmbedder()
        self.language_model = ExtractiveModel(self.embedder)
        settings = Settings(relay_window=5_000)
        self.relay = Relay(self.stack.ledger_database, world.broker, self._ring, settings, name="relay@machine")
        for worker in world.workers:
            worker.leases.clear()

    # -- what can happen ------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        create_tenant(self.stack.owner, self.tenant_id, f"tenant {self.tenant_id}")
        self._set_clock()
        self.world.broker.flushall()

    @rule(
        user=st.sampled_from(USERS), conversation=st.sampled_from(CONVERSATIONS), count=st.integers(1, 4), what=Number
    )
    def ingest(self, user: str, conversation: str, count: int, what: int) -> None:
        known = self.model.turns.get((user, conversation), [])
        turns = [self._turn(user, conversation, f"t{len(known) + n}", what + n) for n in range(count)]
        if user in self.model.erased:
            self._refused(ErasedScopeError, turns)
            return
        receipts = self._record(turns)
        assert [receipt.seq for receipt in receipts] == list(range(len(known) + 1, len(known) + count + 1))
        assert not any(receipt.duplicate for receipt in receipts)
        for turn, receipt in zip(turns, receipts, strict=True):
            self.sent[user, conversation, turn.client_turn_id] = turn, receipt
        self.model.turns[user, conversation] = known + [turn.client_turn_id for turn in turns]
        self._accept()

    @precondition(lambda self: self.sent)
    @rule(which=Number)
    def ingest_again(self, which: int) -> None:
        turn, receipt = self._sent(which)
        (again,) = self._record([turn])
        assert again.duplicate
        assert (again.turn_id, again.seq, again.position) == (receipt.turn_id, receipt.seq, receipt.position)

    @precondition(lambda self: self.sent)
    @rule(which=Number)
    def ingest_with_another_body(self, which: int) -> None:
        turn, _ = self._sent(which)
        new = self._turn(turn.user_id, turn.conversation_id, "beside", which)
        other = self._turn(turn.user_id, turn.conversation_id, turn.client_turn_id, which, words=f"{turn.content} no")
        self._refused(TurnConflictError, [new, other])

    @precondition(lambda self: self.model.turns)
    @rule(which=Number)
    def close_a_conversation(self, which: int) -> None:
        user, conversation = _pick(sorted(self.model.turns), which)
        scope = scope_id(self.tenant_id, user, "companion")
        close_conversation(
            self.stack.app, self.tenant_id, scope_id=scope, conversation_id=conversation, max_attempts=MAX_ATTEMPTS
        )
        self._accept()

    @rule()
    def tick(self) -> None:
        """After a look of the relay every row that is due has a doorbell in the broker."""
        self.relay._reap_due = inf  # no reaping beside it
        self.relay.tick()
        rung = {one for message in self.messages for one in message}
        waiting = {row.work_id for row in self.model.work.values() if row.state == "ready"}
        spent = {row.work_id for row in self.model.work.values() if row.attempts >= MAX_ATTEMPTS}
        assert waiting - spent <= rung

    @rule()
    def empty_the_broker(self) -> None:
        self.world.broker.flushall()
        self.messages.clear()

    @precondition(lambda self: self.messages)
    @rule(worker=st.integers(0, 2), which=Number)
    def deliver(self, worker: int, which: int) -> None:
        self._claim(worker, self.messages.pop(which % len(self.messages)))

    @precondition(lambda self: self.messages)
    @rule(worker=st.integers(0, 2), which=Number)
    def deliver_twice(self, worker: int, which: int) -> None:
        message = _pick(self.messages, which)
        self._claim(worker, message)
        self._claim((worker + 1) % 3, message)

    @rule(worker=st.integers(0, 2), stranger=st.integers(1, 2**40))
    def deliver_what_nobody_rang_for(self, worker: int, stranger: int) -> None:
        self._claim(worker, [*list(self.model.work)[:3], stranger * 1_000_003])

    @precondition(lambda self: self._leases())
    @rule(which=Number)
    def run(self, which: int) -> None:
        """Run a stage under a lease, however old: a lost one has no effect at all."""
        worker, lease = self._take_lease(which)
        row = self.model.work.get(lease.work_id)
        if row is None or not row.is_held_by(lease):
            before = self._read(FINGERPRINT)
            assert isinstance(self._run(worker, lease), FencedError)
            assert self._read(FINGERPRINT) == before
            return
        trouble = self._run(worker, lease)
        if trouble is None:
            self.model.complete(lease)
        else:
            assert isinstance(trouble, StaleReadError), trouble
            self._fail(worker, lease, ErrorClass.DEFERRED)
        self._forgive_progress(lease)
        self._accept()

    @precondition(lambda self: self._leases())
    @rule(which=Number)
    def run_some(self, which: int) -> None:
        for _ in range(min(4, len(self._leases()))):
            self.run(which)

    @precondition(lambda self: self._leases())
    @rule(which=Number, error_class=st.sampled_from(list(ErrorClass)))
    def fail(self, which: int, error_class: ErrorClass) -> None:
        worker, lease = self._take_lease(which)
        row = self.model.work.get(lease.work_id)
        assert self._fail(worker, lease, error_class) is (row is not None and row.is_held_by(lease))
        self._accept()

    @precondition(lambda self: self._leases())
    @rule(which=Number)
    def release(self, which: int) -> None:
        worker, lease = self._take_lease(which)
        row = self.model.work.get(lease.work_id)
        worker.ledger.release([lease])
        if row is not None and row.is_held_by(lease):
            self.model.release(lease)

    @rule(worker=st.integers(0, 2))
    def beat(self, worker: int) -> None:
        leases = self.world.workers[worker].leases
        held = {lease.work_id for lease in leases if self._is_held(lease)}
        assert self.world.workers[worker].ledger.beat(leases, lease_seconds=60) == held
        for work_id in held:
            self.model.work[work_id] = replace(self.model.work[work_id], is_overdue=False)

    @precondition(lambda self: any(row.state == "leased" for row in self.model.work.values()))
    @rule(which=Number)
    def let_a_lease_run_out(self, which: int) -> None:
        leased = [row for row in self.model.work.values() if row.state == "leased"]
        row = _pick(leased, which)
        with self.stack.owner.transaction(self.tenant_id) as connection:
            connection.execute(RUN_OUT, {"tenant_id": self.tenant_id, "work_id": row.work_id})
        self.model.work[row.work_id] = replace(row, is_overdue=True)

    @rule()
    def reap(self) -> None:
        with self.stack.ledger_database.across_tenants() as connection:
            reap_expired(connection)
        self.model.reap()
        self._accept()

    @rule()
    def sweep(self) -> None:
        owe_due(self.stack.ledger_database, policy=SMALL)
        self._accept()

    @rule(hours=st.sampled_from(STEPS_HOURS))
    def step_the_clock(self, hours: int) -> None:
        self.now += timedelta(hours=hours)
        self._set_clock()

    @rule(which=Number)
    def read_something(self, which: int) -> None:
        owners = self._read(OWNERS)
        if owners:
            scope, kind, owner = _pick(owners, which)
            record_access(
                self.stack.app, self.tenant_id, scope, retrieval_id=mint_id(), cause="injected", owners=[(kind, owner)]
            )

    @rule(which=Number)
    def restore(self, which: int) -> None:
        forgotten = self._read(FORGOTTEN)
        if forgotten:
            assert restore_knowledge(self._parts(self.stack.app), self.tenant_id, _pick(forgotten, which)[0])
            self._accept()

    @precondition(lambda self: any(row.state == "dead" for row in self.model.work.values()))
    @rule()
    def replay_the_dead(self) -> None:
        dead = [row for row in self.model.work.values() if row.state == "dead"]
        outcome = replay(self.stack.owner, self.stack.ledger_database, [row.work_id for row in dead])
        assert sorted(outcome.changed) == sorted(row.work_id for row in dead)
        for row in dead:
            self.model.work[row.work_id] = replace(row, state="ready", attempts=0)

    @precondition(lambda self: any(row.state == "dead" for row in self.model.work.values()))
    @rule(which=Number)
    def discard_one_of_the_dead(self, which: int) -> None:
        row = _pick([row for row in self.model.work.values() if row.state == "dead"], which)
        discard(self.stack.owner, self.stack.ledger_database, [row.work_id], reason="not wanted")
        self.model.work[row.work_id] = replace(row, state="cancelled", fence=row.fence + 1)
        self.gave_up = True
        self._accept()

    @rule(user=st.sampled_from(USERS), sure=st.integers(0, 3))
    def erase(self, user: str, sure: int) -> None:
        if sure:  # seldom, or nobody would be left to remember
            return
        known = any(name == user for name, _ in self.model.turns) or user in self.model.erased
        try:
            erase_user(self.stack.app, self.tenant_id, user)
        except NotFoundError:
            assert not known
            return
        assert known
        self._forget_user(user)
        assert self._tables_with(f"zq{user}") == []

    @rule()
    def repair(self) -> None:
        """What is whole has nothing to mend, unless a sweep has left a silent conversation to it."""
        mended = repair_tenant(self.stack.owner, self.tenant_id, policy=SMALL, max_attempts=MAX_ATTEMPTS)
        assert self.gave_up or {one.what for one in mended} <= {"never sealed"}, mended
        self._accept()

    # -- what must always be the case -----------------------------------------------------------------------------

    @invariant()
    def the_ledger_is_as_it_must_be(self) -> None:
        assert self._found() == self.model.work

    @invariant()
    def every_turn_is_there_once_and_in_its_place(self) -> None:
        found = {(user, name): (list(turns), list(seqs)) for user, name, turns, seqs in self._read(TURNS)}
        expected = {key: (names, list(range(1, len(names) + 1))) for key, names in self.model.turns.items()}
        assert found == expected

    @invariant()
    def no_invariant_is_broken(self) -> None:
        assert self._violations(at_rest=False) == []

    def teardown(self) -> None:
        """Everything that is owed gets done: nothing is lost on the way, and nothing is left standing."""
        self._drain()
        self.every_turn_is_there_once_and_in_its_place()
        assert {row.state for row in self._found().values()} <= {"done", "dead", "cancelled"}
        assert self._violations(at_rest=True) == []
        with self.stack.owner.transaction(self.tenant_id) as connection:
            connection.execute(DROP_TENANT, {"tenant_id": self.tenant_id})

    # -- how ------------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        worker = self.world.workers[0]
        for _ in range(MAX_ROUNDS):
            with self.stack.owner.transaction(self.tenant_id) as connection:
                for row in self._found().values():
                    connection.execute(RUN_OUT, {"tenant_id": self.tenant_id, "work_id": row.work_id})
            with self.stack.ledger_database.across_tenants() as connection:
                reap_expired(connection)
            ready = [row.work_id for row in self._found().values() if row.state == "ready"]
            if not ready:
                return
            for lease in worker.ledger.claim(ready, owner="drain", lease_seconds=60):
                trouble = self._run(worker, lease)
                if trouble is not None:
                    assert isinstance(trouble, StaleReadError), trouble
                    self._give_back(worker, lease, ErrorClass.DEFERRED)
        raise AssertionError(f"work goes on and on: {self._found()}")

    def _claim(self, worker: int, work_ids: Sequence[int]) -> None:
        session = self.world.workers[worker]
        leases = session.ledger.claim(work_ids, owner=f"worker {worker}", lease_seconds=60)
        assert [lease.work_id for lease in leases] == self.model.claim(work_ids)
        for lease in leases:
            row = self.model.work[lease.work_id]
            assert (lease.fence, lease.attempts, lease.generation) == (row.fence, row.attempts, row.generation)
        session.leases += leases

    def _run(self, worker: Worker, lease: Lease) -> Exception | None:
        try:
            STAGES[lease.kind](self._parts(worker.app), lease)
        except (FencedError, StaleReadError) as error:
            return error
        return None

    def _fail(self, worker: Worker, lease: Lease, error_class: ErrorClass) -> bool:
        if self._is_held(lease):
            self.model.fail(lease, error_class)
        return self._give_back(worker, lease, error_class)

    def _give_back(self, worker: Worker, lease: Lease, error_class: ErrorClass) -> bool:
        decision = decide_retry(error_class, attempts=lease.attempts, max_attempts=MAX_ATTEMPTS, jitter=0.0)
        return worker.ledger.fail(lease, decision, error_class=error_class, error="as the machine wants it")

    def _forgive_progress(self, lease: Lease) -> None:
        """A stage of several parts forgives what was tried before with each part that it ends."""
        row, found = self.model.work[lease.work_id], self._found()[lease.work_id]
        if found.attempts < row.attempts:
            assert lease.kind in {"merge", "forget"}
            self.model.work[lease.work_id] = replace(row, attempts=found.attempts)

    def _is_held(self, lease: Lease) -> bool:
        row = self.model.work.get(lease.work_id)
        return row is not None and row.is_held_by(lease)

    def _leases(self) -> list[tuple[Worker, Lease]]:
        return [(worker, lease) for worker in self.world.workers for lease in worker.leases]

    def _take_lease(self, which: int) -> tuple[Worker, Lease]:
        worker, lease = _pick(self._leases(), which)
        worker.leases.remove(lease)
        return worker, lease

    def _parts(self, database: Database) -> Parts:
        return Parts(database, self.embedder, self.language_model, SMALL, MAX_ATTEMPTS)

    def _turn(self, user: str, conversation: str, name: str, what: int, *, words: str = "") -> NewTurn:
        return NewTurn(
            user_id=user, agent_id="companion", conversation_id=conversation, client_turn_id=name, role="user",
            speaker=f"zq{user}", content=words or f"{_pick(SAID, what)} zq{user}", occurred_at=self.now, kind="normal",
        )  # fmt: skip

    def _record(self, turns: Sequence[NewTurn]) -> list[Receipt]:
        return record_turns(self.stack.app, self.tenant_id, turns, policy=SMALL, max_attempts=MAX_ATTEMPTS)

    def _refused(self, error: type[Exception], turns: Sequence[NewTurn]) -> None:
        try:
            self._record(turns)
        except error:
            return
        raise AssertionError(f"{error.__name__} was expected")

    def _sent(self, which: int) -> tuple[NewTurn, Receipt]:
        return self.sent[_pick(sorted(self.sent), which)]

    def _forget_user(self, user: str) -> None:
        self.model.erased.add(user)
        self.model.turns = {key: names for key, names in self.model.turns.items() if key[0] != user}
        self.sent = {key: value for key, value in self.sent.items() if key[0] != user}
        left = self._found()
        scope = scope_id(self.tenant_id, user, "companion")
        names = {str(scope), *(str(conversation_id(scope, name)) for name in CONVERSATIONS)}
        assert not any(row.subject_key in names for row in left.values())
        self.model.work = {work_id: row for work_id, row in self.model.work.items() if work_id in left}

    def _accept(self) -> None:
        self.model.accept(self._found())

    def _found(self) -> dict[int, Work]:
        return {row.work_id: row for row in (Work(*columns) for columns in self._read(WORK))}

    def _read(self, statement: Any) -> list[tuple[Any, ...]]:
        with self.stack.app.transaction(self.tenant_id) as connection:
            return [tuple(row) for row in connection.execute(statement, {"tenant_id": self.tenant_id})]

    def _violations(self, *, at_rest: bool) -> list[Any]:
        with self.stack.app.transaction(self.tenant_id) as connection:
            return list(find_violations(connection, self.tenant_id, at_rest=at_rest))

    def _tables_with(self, canary: str) -> list[str]:
        with self.stack.owner.transaction(self.tenant_id) as connection:
            return [
                table
                for table, columns in self.world.columns.items()
                if connection.execute(
                    text(f"select 1 from memoryos.{table} where strpos({columns}, :canary) > 0 limit 1"),
                    {"canary": canary},
                ).first()
            ]

    def _set_clock(self) -> None:
        with self.stack.owner.across_tenants() as connection:
            freeze_clock(connection, self.now)

    def _ring(self, _: str, work_ids: Sequence[int]) -> None:
        self.messages.append(list(work_ids))


def _pick(items: Sequence[Any], which: int) -> Any:
    return items[which % len(items)]
