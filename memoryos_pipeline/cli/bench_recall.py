"""`memoryos bench recall`: how long search and context take, as one memory grows and others fill the database."""

import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zlib import crc32

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.embedded.first_run import TENANT_ID, TENANT_NAME, ensure_schema
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.synthetic import AGENT, VOCABULARY, analyze, fill_user
from memoryos_pipeline.store.tenants import create_tenant

if TYPE_CHECKING:
    from memoryos_pipeline.models.protocols import Embedded, Embedder, Vector
    from memoryos_pipeline.stages.parts import Parts

USER_SIZES = (1_000, 10_000)
SMALL = 6_000
"""Memories in the database, other users' as padding, that growth is measured from."""
PADDING_USER = 1_000
QUESTION_WORDS = 6
WARM_UP = 20
BUDGET_TOKENS = 1_000
SEED = 7


def recall(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    memories: Annotated[int, typer.Option(help="Memories in the full database.", min=12_000)] = 60_000,
    questions: Annotated[int, typer.Option(help="Questions a measurement.", min=20)] = 200,
) -> None:
    """Time search (without embedding the question) and context (all in) for one client, as the database grows."""
    console = Console(stderr=True)
    with _database() as (app, owner):
        result = _measure(app, owner, memories=memories, questions=questions, console=console)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        Console().print(_table(result))


@contextmanager
def _database() -> Iterator[tuple[Database, Database]]:
    """Run Postgres (fsync on) in a temporary directory: its application and owner roles, gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="mem-bench-"))
    root.chmod(0o711)  # as root the server runs under another account, which passes through
    server = EmbeddedPostgres(root / "postgres")
    try:
        server.start()
        server.create_database("memoryos")
        ensure_schema(server.url("owner"))
        app, owner = Database(server.url("app"), pool_size=2), Database(server.url("owner"), pool_size=1)
        create_tenant(owner, TENANT_ID, TENANT_NAME)
        yield app, owner
        app.dispose()
        owner.dispose()
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


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


def _measure(app: Database, owner: Database, *, memories: int, questions: int, console: Console) -> dict[str, Any]:
    parts = _parts(app)
    quick = replace(parts, embedder=StandIn.of(parts.embedder))
    names = {size: f"user-{size}" for size in USER_SIZES}

    def fill(user_id: str, turns: int) -> None:
        with app.transaction(TENANT_ID) as connection:
            fill_user(connection, TENANT_ID, user_id, turns=turns, embedder=parts.embedder)

    def pad(start: int, end: int) -> None:
        for number in range(start, end, PADDING_USER):
            fill(f"other-{number}", PADDING_USER)
            console.print(f"{number + PADDING_USER} of {memories} memories", style="dim")
        with owner.across_tenants() as connection:
            analyze(connection)

    fill(names[1_000], 1_000)
    pad(1_000, SMALL)
    small = _search_times(quick, names[1_000], questions)
    fill(names[10_000], 10_000)
    pad(SMALL + 10_000, memories)
    full = {size: _search_times(quick, names[size], questions) for size in USER_SIZES}
    context = {size: _context_times(parts, names[size], questions) for size in USER_SIZES}
    return _result(small, full, context, memories=memories, questions=questions)


def _parts(app: Database) -> "Parts":
    from memoryos_pipeline.pipeline import build_parts  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.settings import load_settings  # noqa: PLC0415

    return replace(build_parts(load_settings()), database=app)


def _search_times(parts: "Parts", user_id: str, questions: int) -> list[float]:
    from memoryos_pipeline.recall.search import Ask, search  # noqa: PLC0415

    return _times(lambda query: search(parts, TENANT_ID, Ask(user_id, AGENT, query)), questions)


def _context_times(parts: "Parts", user_id: str, questions: int) -> list[float]:
    from memoryos_pipeline.recall.context import build_context  # noqa: PLC0415
    from memoryos_pipeline.recall.search import Ask  # noqa: PLC0415

    def build(query: str) -> object:
        return build_context(parts, TENANT_ID, Ask(user_id, AGENT, query), token_budget=BUDGET_TOKENS)

    return _times(build, questions)


def _times(ask: Callable[[str], object], questions: int) -> list[float]:
    """Ask questions one after another and return the sorted milliseconds of each; the first ones warm up."""
    draw, times = random.Random(SEED), []  # noqa: S311 - nothing secret is drawn
    for number in range(-WARM_UP, questions):
        words = " ".join(f"w{int(VOCABULARY ** draw.random())}" for _ in range(QUESTION_WORDS))
        started = time.perf_counter()
        ask(f"What did Mika say about {words}?")
        if number >= 0:
            times.append((time.perf_counter() - started) * 1_000)
    return sorted(times)


def _result(
    small: list[float],
    full: dict[int, list[float]],
    context: dict[int, list[float]],
    *,
    memories: int,
    questions: int,
) -> dict[str, Any]:
    growth = _percentile(full[1_000], 95) / _percentile(small, 95)
    figures: dict[str, Any] = {f"growth_{memories // 1_000}k_over_{SMALL // 1_000}k": round(growth, 2)}
    for share in (50, 95, 99):
        figures[f"p{share}_ms_user_1000_of_{SMALL // 1_000}k"] = _percentile(small, share)
        for size in USER_SIZES:
            figures[f"p{share}_ms_user_{size}"] = _percentile(full[size], share)
            figures[f"p{share}_ms_context_user_{size}"] = _percentile(context[size], share)
    return {**figures, "memories": memories, "questions": questions, "clients": 1}


def _percentile(times: list[float], share: int) -> float:
    return round(times[min(len(times) - 1, len(times) * share // 100)], 2)


def _table(result: dict[str, Any]) -> Table:
    table = Table("milliseconds", "p50", "p95", "p99")
    rows = [
        f"user_1000_of_{SMALL // 1_000}k",
        *(f"{kind}user_{size}" for kind in ("", "context_") for size in USER_SIZES),
    ]
    for row in rows:
        table.add_row(row.replace("_", " "), *(f"{result[f'p{share}_ms_{row}']:.1f}" for share in (50, 95, 99)))
    return table
