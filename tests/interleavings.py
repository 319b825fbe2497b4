"""Every order in which two sessions can take their steps, on a real Postgres.

A session runs real code over connections of its own. A gate stops it before each statement that counts and before
commits, and a scheduler opens one gate at a time, going through all choices it has. A session that waits for a
lock is recognized in pg_locks; the other goes on meanwhile, as it would.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, event, text

from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import Ledger
from tests.conftest import Stack

T = TypeVar("T")
PATIENCE_SECONDS = 30.0
LOOK_EVERY_SECONDS = 0.001
WAITING = text("select exists (select from pg_locks where pid = any(:pids) and not granted)")
MY_PID = text("select pg_backend_pid()")

Counts = Callable[[str], bool]
"""Tells of a statement whether it is a step of its own; others run together with the step before them."""


def every_statement(statement: str) -> bool:
    """Count whatever is about rows; settings of a transaction touch none."""
    return not statement.lstrip().startswith("select set_config")


def statements_with(*words: str) -> Counts:
    """Count the statements in which one of these words stands; `commit` is one as well."""
    return lambda statement: any(word in statement for word in words)


class Session:
    """One of the two: its connections, its thread, and the gate it stops at."""

    def __init__(self, stack: Stack, name: str) -> None:
        self.name = name
        self.app = Database(stack.url("app"), pool_size=1)
        self.ledger_database = Database(stack.url("ledger"), pool_size=1)
        self.ledger = Ledger(self.ledger_database)
        self.was_blocked = False
        self.pids = [_watch(database, self._reach) for database in (self.app, self.ledger_database)]
        self._counts: Counts = every_statement
        self._moved = threading.Condition()
        self._at: str | None = None
        self._opened = False
        self._thread = ThreadPoolExecutor(1)
        self._running: Future[Any] | None = None
        self._is_started = False

    def start(self, action: Callable[["Session", T], Any], ground: T, counts: Counts) -> None:
        """Begin the action over its ground; it stops at its first gate."""
        self._counts, self._at, self._opened, self.was_blocked = counts, None, False, False
        self._running, self._is_started = None, True
        self._running = self._thread.submit(action, self, ground)
        self._running.add_done_callback(lambda _: self._tell())

    def open_gate(self) -> str:
        """Let the session take the step it stands before; return what that is."""
        with self._moved:
            step, self._at, self._opened = self._at or "", None, True
            self._moved.notify_all()
        return step

    def arrives(self, timeout_seconds: float) -> bool:
        """Wait until the session is at a gate or over; False when it is neither by then."""
        with self._moved:
            return self._moved.wait_for(lambda: self.is_at_gate or self.is_over, timeout_seconds)

    @property
    def is_at_gate(self) -> bool:
        """Whether it waits for the scheduler."""
        return self._at is not None

    @property
    def is_over(self) -> bool:
        """Whether its action has ended, well or not."""
        return self._running is not None and self._running.done()

    def outcome(self) -> Any:
        """Return what the action returned, or the exception it raised."""
        assert self._running is not None
        return self._running.exception() or self._running.result()

    def close(self) -> None:
        """Close its connections; its action must be over."""
        self._thread.shutdown()
        self.app.dispose()
        self.ledger_database.dispose()

    def _reach(self, point: str) -> None:
        if not self._is_started or not self._counts(point):
            return
        with self._moved:
            self._at, self._opened = point, False
            self._moved.notify_all()
            if not self._moved.wait_for(lambda: self._opened, PATIENCE_SECONDS):
                raise TimeoutError(f"{self.name} was left standing before: {point}")

    def _tell(self) -> None:
        with self._moved:
            self._moved.notify_all()


def _watch(database: Database, reach: Callable[[str], None]) -> int:
    with database.across_tenants() as connection:
        pid: int = connection.execute(MY_PID).scalar_one()

    def before(*call: Any) -> None:
        reach(call[2])

    def commit(_: Connection) -> None:
        reach("commit")

    event.listen(database.engine, "before_cursor_execute", before)
    event.listen(database.engine, "commit", commit)
    return pid


@dataclass(frozen=True)
class Ended:
    """How one order ended: what each of the two returned or raised, who had to wait, and the steps as they came."""

    first: Any
    second: Any
    first_waited: bool
    second_waited: bool
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.steps)


@dataclass
class Pair(Generic[T]):
    """Two actions that meet. `prepare` makes what they meet over, anew for each order; `check` sees how it ended."""

    prepare: Callable[[], T]
    first: Callable[[Session, T], Any]
    second: Callable[[Session, T], Any]
    check: Callable[[T, Ended], None]
    first_counts: Counts = every_statement
    second_counts: Counts = every_statement
    first_gives_way: bool = False
    """Whether the first begins anew when it has waited too long: from then on the second is let go first, or there
    would be no end of orders."""


@dataclass
class _Order:
    """The choices of one run: those given, then always the first; and how many there were at each."""

    given: list[int] = field(default_factory=list)
    taken: list[tuple[int, int]] = field(default_factory=list)

    def choose(self, options: int) -> int:
        at = len(self.taken)
        choice = min(self.given[at], options - 1) if at < len(self.given) else 0
        self.taken.append((choice, options))
        return choice

    def following(self) -> list[int] | None:
        """Return the choices of the next order that was not run yet; None after the last."""
        taken = list(self.taken)
        while taken and taken[-1][0] == taken[-1][1] - 1:
            taken.pop()
        return [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1] if taken else None


def run_all_orders(stack: Stack, pair: Pair[T]) -> int:
    """Run two actions in every order of their steps, check each end, and return how many orders there were."""
    first, second = Session(stack, "A"), Session(stack, "B")
    orders = 0
    choices: list[int] | None = []
    try:
        while choices is not None:
            order = _Order(choices)
            ground = pair.prepare()
            first.start(pair.first, ground, pair.first_counts)
            second.start(pair.second, ground, pair.second_counts)
            steps = tuple(_run_order(stack, order, first, second, gives_way=pair.first_gives_way))
            ended = Ended(first.outcome(), second.outcome(), first.was_blocked, second.was_blocked, steps)
            _check(pair, ground, ended)
            orders, choices = orders + 1, order.following()
    finally:
        first.close()
        second.close()
    return orders


def _check(pair: Pair[T], ground: T, ended: Ended) -> None:
    try:
        pair.check(ground, ended)
    except AssertionError as error:
        error.add_note(f"in the order: {ended}; ended as {ended.first!r} and {ended.second!r}")
        raise


def _run_order(stack: Stack, order: _Order, first: Session, second: Session, *, gives_way: bool) -> Iterator[str]:
    while not (first.is_over and second.is_over):
        _settle(stack, (first, second))
        ready = [session for session in (first, second) if session.is_at_gate]
        if gives_way and first.was_blocked:
            ready = ready[-1:]
        if ready:
            chosen = ready[order.choose(len(ready)) if len(ready) > 1 else 0]
            yield f"{chosen.name}:{_name(chosen.open_gate())}"


def _settle(stack: Stack, sessions: tuple[Session, ...]) -> None:
    """Wait until each session stands at a gate, is over, or waits for a lock; one of them at least for nobody."""
    waiting = [session for session in sessions if not session.arrives(0) and not _arrives_or_waits(stack, session)]
    for session in waiting:
        session.was_blocked = True
    if waiting and all(session in waiting or session.is_over for session in sessions):
        # Both wait: a lock timeout or the deadlock check of Postgres decides who goes on.
        for _ in range(int(PATIENCE_SECONDS * 100)):
            if any(session.arrives(0.01) for session in waiting):
                return
        raise TimeoutError(f"nobody moves: {[session.name for session in waiting]}")


def _arrives_or_waits(stack: Stack, session: Session) -> bool:
    """Return True once the session has arrived, False once it is seen to wait for a lock."""
    for _ in range(int(PATIENCE_SECONDS / LOOK_EVERY_SECONDS)):
        if session.arrives(LOOK_EVERY_SECONDS):
            return True
        with stack.owner.across_tenants() as connection:
            if connection.execute(WAITING, {"pids": session.pids}).scalar_one():
                return session.arrives(0)
    raise TimeoutError(f"{session.name} neither moves nor waits")


def _name(step: str) -> str:
    """Name a step by the verb and the table of its statement."""
    words = step.split()
    table = next((word for word in words if word.startswith("memoryos.")), "")
    return f"{words[0]} {table.removeprefix('memoryos.')}".strip() if words else "?"
