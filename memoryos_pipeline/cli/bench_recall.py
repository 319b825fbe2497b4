"""`memoryos bench recall`: how long search and context take, as one memory grows and others fill the database."""

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any
from zlib import crc32

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.evaluating import bar
from memoryos_pipeline.embedded.first_run import TENANT_ID, TENANT_NAME
from memoryos_pipeline.embedded.temporary import temporary_postgres
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.synthetic import AGENT, VOCABULARY, fill_user, settle
from memoryos_pipeline.store.tenants import create_tenant

if TYPE_CHECKING:
    from memoryos_pipeline.models.protocols import Embedded, Embedder, Vector
    from memoryos_pipeline.stages.parts import Parts

USER_SIZES = (1_000, 10_000, 100_000)
SIZES = (6_000, 60_000, 600_000)
"""Memories in the database when the smallest user is asked again; growth is the last over the first."""
PADDING_USER = 1_000
FILLERS = 2
CLIENTS = 8
QUESTION_WORDS = 6
WARM_UP = 20
BUDGET_TOKENS = 1_000
SEED = 7
SHARES = (50, 95, 99)


def recall(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    memories: Annotated[int, typer.Option(help="Memories in the full database.", min=30_000)] = SIZES[-1],
    questions: Annotated[int, typer.Option(help="Questions a measurement.", min=20)] = 200,
) -> None:
    """Time search (without embedding the question) and context (all in), as a memory and the database grow."""
    console = Console(stderr=True)
    with _database() as (app, owner):
        result = _measure(app, owner, memories=memories, questions=questions, console=console)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(_table(result))


@contextmanager
def _database() -> Iterator[tuple[Database, Database]]:
    """Run a temporary Postgres and yield its application and owner roles."""
    with temporary_postgres() as server:
        app, owner = Database(server.url("app"), pool_size=CLIENTS), Database(server.url("owner"), pool_size=1)
        create_tenant(owner, TENANT_ID, TENANT_NAME)
        yield app, owner
        app.dispose()
        owner.dispose()


@dataclass(slots=True)
class StandIn:
    """The space of an embedder without its cost: a question's vector is drawn at random."""

    model: str
    revision: str
    dimensions: int
    token_cap: int

    @classmethod
    def of(cls, embedder: "Embedder") -> "StandIn":
        """Stand in for an embedder."""
        return cls(embedder.model, embedder.revision, embedder.dimensions, embedder.token_cap)

    def embed_query(self, text: str) -> "Vector":
        """Return a random vector, the same for the same text."""
        import numpy as np  # noqa: PLC0415 - other commands start without

        drawn = np.random.default_rng(crc32(text.encode())).standard_normal(self.dimensions).astype(np.float32)
        vector: Vector = drawn / np.linalg.norm(drawn)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> "list[Embedded]":
        """Return what a question of the same words would get, for each text."""
        from memoryos_pipeline.models.protocols import Embedded  # noqa: PLC0415 - other commands start without

        return [Embedded(self.embed_query(text), len(text.split()), truncated=False) for text in texts]


class Stopwatch:
    """Where the time of a question goes: in the embedder, in Postgres, and the rest, which is scoring. In seconds."""

    def __init__(self, database: Database, embedder: "Embedder") -> None:
        from sqlalchemy import event  # noqa: PLC0415 - other commands start without

        self.model, self.revision = embedder.model, embedder.revision
        self.dimensions, self.token_cap = embedder.dimensions, embedder.token_cap
        self._embedder = embedder
        self._spent = threading.local()
        event.listen(database.engine, "before_cursor_execute", self._begin)
        event.listen(database.engine, "after_cursor_execute", self._end)

    def reset(self) -> None:
        """Start over for the question this thread asks next."""
        self._spent.sql = self._spent.embedding = 0.0

    def read(self) -> tuple[float, float]:
        """Return what this thread spent on embedding and in Postgres since the last reset."""
        return self._spent.embedding, self._spent.sql

    def embed_query(self, text: str) -> "Vector":
        """Embed a question, timed."""
        started = time.perf_counter()
        vector = self._embedder.embed_query(text)
        self._spent.embedding += time.perf_counter() - started
        return vector

    def embed_passages(self, texts: Sequence[str]) -> "list[Embedded]":
        """Embed stored text, untimed: no question needs it."""
        return self._embedder.embed_passages(texts)

    def _begin(self, *_: object) -> None:
        self._spent.started = time.perf_counter()

    def _end(self, *_: object) -> None:
        self._spent.sql = getattr(self._spent, "sql", 0.0) + time.perf_counter() - self._spent.started


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of every question of one measurement: all in, and its parts."""

    total: list[float]
    embedding: list[float]
    sql: list[float]

    def figures(self, name: str) -> dict[str, float]:
        """Return percentiles of all in, and the mean of each part."""
        found = {f"p{share}_ms_{name}": _percentile(sorted(self.total), share) for share in SHARES}
        parts = {"embedding": self.embedding, "sql": self.sql, "scoring": self._rest()}
        return found | {f"{part}_ms_{name}": round(fmean(times), 2) for part, times in parts.items()}

    def _rest(self) -> list[float]:
        return [all_in - model - sql for all_in, model, sql in zip(self.total, self.embedding, self.sql, strict=True)]


def _measure(app: Database, owner: Database, *, memories: int, questions: int, console: Console) -> dict[str, Any]:
    parts = _parts(app)
    bench = Bench(parts, questions)
    figures: dict[str, Any] = {}
    with bar(console, "memories", total=memories) as advanced:
        filler = Filler(app, owner, parts.embedder, advanced)
        for size in sorted({min(size, memories) for size in SIZES}):
            filler.fill_to(size, last=size == memories)
            name = _name(size)
            if size < memories:
                figures |= bench.search("user-1000").figures(f"user_1000_of_{name}")
    for size in (size for size in USER_SIZES if f"user-{size}" in filler.users):
        user = f"user-{size}"
        figures |= bench.search(user).figures(f"user_{size}")
        figures |= bench.search(user, clients=CLIENTS).figures(f"user_{size}_clients_{CLIENTS}")
        figures |= bench.context(user).figures(f"context_user_{size}")
    first = _name(SIZES[0])
    growth = figures["p95_ms_user_1000"] / figures[f"p95_ms_user_1000_of_{first}"]
    loads = [round(load, 1) for load in os.getloadavg()]
    return {
        f"growth_{_name(memories)}_over_{first}": round(growth, 2), **figures,
        "memories": memories, "questions": questions, "load_average": loads,
    }  # fmt: skip


class Filler:
    """Fills the database with users: those who are asked, and others as padding."""

    def __init__(self, app: Database, owner: Database, embedder: "Embedder", advanced: Callable[[int], object]) -> None:
        self._app, self._owner, self._embedder, self._advanced = app, owner, embedder, advanced
        self._filled = 0
        self.users: set[str] = set()

    def fill_to(self, memories: int, *, last: bool) -> None:
        """Fill up to so many memories; the largest users come with the last filling. Leaves statistics behind."""
        asked = USER_SIZES if last else USER_SIZES[:1]
        wanted = [(f"user-{size}", size) for size in asked if f"user-{size}" not in self.users]
        room = memories - self._filled
        wanted = [(user, size) for user, size in wanted if size <= room // 2]
        room -= sum(size for _, size in wanted)
        first = self._filled // PADDING_USER
        wanted += [(f"other-{first + number}", PADDING_USER) for number in range(room // PADDING_USER)]
        with ThreadPoolExecutor(FILLERS) as fillers:
            for size in fillers.map(self._fill, wanted):
                self._filled += size
                self._advanced(size)
        settle(self._owner)

    def _fill(self, user: tuple[str, int]) -> int:
        user_id, turns = user
        with self._app.transaction(TENANT_ID) as connection:
            fill_user(connection, TENANT_ID, user_id, turns=turns, embedder=self._embedder)
        self.users.add(user_id)
        return turns


class Bench:
    """Asks made-up questions and keeps the times."""

    def __init__(self, parts: "Parts", questions: int) -> None:
        self._questions = questions
        self._real = Stopwatch(parts.database, parts.embedder)
        self._quick = Stopwatch(parts.database, StandIn.of(parts.embedder))
        self._parts = parts

    def search(self, user_id: str, *, clients: int = 1) -> Times:
        """Search without embedding the question."""
        from memoryos_pipeline.recall.search import Ask, search  # noqa: PLC0415

        parts = replace(self._parts, embedder=self._quick)
        return self._times(lambda query: search(parts, TENANT_ID, Ask(user_id, AGENT, query)), self._quick, clients)

    def context(self, user_id: str) -> Times:
        """Build contexts, all in."""
        from memoryos_pipeline.recall.context import build_context  # noqa: PLC0415
        from memoryos_pipeline.recall.search import Ask  # noqa: PLC0415

        parts = replace(self._parts, embedder=self._real)
        budget = BUDGET_TOKENS

        def build(query: str) -> object:
            return build_context(parts, TENANT_ID, Ask(user_id, AGENT, query), token_budget=budget)

        return self._times(build, self._real, 1)

    def _times(self, ask: Callable[[str], object], watch: Stopwatch, clients: int) -> Times:
        """Ask questions, each client one after another; the first ones warm up."""
        draw = random.Random(SEED)  # noqa: S311 - nothing secret is drawn
        drawn = [" ".join(_word(draw) for _ in range(QUESTION_WORDS)) for _ in range(WARM_UP + self._questions)]

        def timed(words: str) -> tuple[float, float, float]:
            watch.reset()
            started = time.perf_counter()
            ask(f"What did Mika say about {words}?")
            total = time.perf_counter() - started
            embedding, sql = watch.read()
            return total * 1_000, embedding * 1_000, sql * 1_000

        with ThreadPoolExecutor(clients) as asking:
            rows = list(asking.map(timed, drawn))[WARM_UP:]
        total, embedding, sql = (list(column) for column in zip(*rows, strict=True))
        return Times(total, embedding, sql)


def _parts(app: Database) -> "Parts":
    from memoryos_pipeline.pipeline import build_parts  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.settings import load_settings  # noqa: PLC0415

    return replace(build_parts(load_settings()), database=app)


def _word(draw: random.Random) -> str:
    return f"w{int(VOCABULARY ** draw.random())}"


def _name(memories: int) -> str:
    return f"{memories // 1_000}k"


def _percentile(times: list[float], share: int) -> float:
    return round(times[min(len(times) - 1, len(times) * share // 100)], 2)


def _table(result: dict[str, Any]) -> Table:
    table = Table("milliseconds", *(f"p{share}" for share in SHARES), "embedding", "SQL", "scoring")
    for name in (key.removeprefix("p95_ms_") for key in result if key.startswith("p95_ms_")):
        columns = [*(f"p{share}" for share in SHARES), "embedding", "sql", "scoring"]
        table.add_row(name.replace("_", " "), *(f"{result[f'{column}_ms_{name}']:.1f}" for column in columns))
    return table
