"""`memoryos eval`: how much of what was said is found again, measured through the public API."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline import __version__
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.cli.readers import UnreadableFileError, read_turns
from memoryos_pipeline.evaluation.asking import Scored, ask_all
from memoryos_pipeline.evaluation.questions import DataSet, locomo_data, sample_data
from memoryos_pipeline.evaluation.report import summarize
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.sample import sample_questions, sample_turns
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.cli.evaluating import System

SAMPLE = "sample"
ZONE = ZoneInfo("UTC")
"""LoCoMo says no time zone; one is as good as another as long as turns and questions share it."""
SHOWN = ("n", "r5", "r10", "r20", "all10", "ndcg10", "mrr", "session5", "rec500", "rec1000", "rec2000")

app = typer.Typer(name="eval", help="Measure how well this memory remembers.", no_args_is_help=True)


class Tier(StrEnum):
    """Where memory lies when it is asked."""

    AS_IS = "as-is"
    WARM = "warm"
    COLD = "cold"


class Kind(StrEnum):
    """What may be recalled."""

    TURN = "turn"
    KNOWLEDGE = "knowledge"
    PAGE = "page"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    tier: Tier
    kinds: tuple[str, ...] | None
    here: bool


@app.callback()
def _group() -> None:
    """Measure how well this memory remembers."""


@app.command()
def recall(
    data: Annotated[str, typer.Option(help="A LoCoMo file, or `sample` for the conversations in the package.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of a table.")] = False,
    limit_questions: Annotated[int | None, typer.Option(min=1, help="Ask only the first questions.")] = None,
    tiers: Annotated[Tier, typer.Option(help="Seal (warm) or archive (cold) everything before asking.")] = Tier.AS_IS,
    kinds: Annotated[list[Kind] | None, typer.Option(help="Recall only this; may be repeated.")] = None,
    here: Annotated[bool, typer.Option("--here", help="Use the running system instead of one of its own.")] = False,
) -> None:
    """Put conversations in, wait until they are memory, ask what is known about them, and score what is found."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415

    console = Console(stderr=True)
    if here and tiers is Tier.COLD:
        raise typer.BadParameter("moves the clock, which is not done to a running system", param_hint="--tiers cold")
    started = time.monotonic()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        asked = _first(read_data(data), limit_questions)
        wanted = Wanted(tiers, tuple(kinds) if kinds else None, here)
        scored, noted = _measure(asked, wanted, console)
    except (UnreadableFileError, NotConnectedError, MemoryClientError, EmbeddedServerError) as error:
        end_with(console, str(error))
    except KeyboardInterrupt:
        end_with(console, "stopped")
    report = {**summarize(scored), **noted, **asked.dropped, "seconds": round(time.monotonic() - started, 1)}
    if as_json:
        typer.echo(json.dumps(report))
    else:
        Console().print(_table(report))


def read_data(named: str) -> DataSet:
    """Return the data set that `--data` names. Raises UnreadableFileError."""
    if named == SAMPLE:
        return sample_data(sample_questions(), sample_turns())
    path = Path(named)
    turns = read_turns(path, ZONE)
    written = path.read_text(encoding="utf-8-sig").lstrip()
    samples = json.loads(written) if written.startswith("[") else []
    if not samples or not all("qa" in sample for sample in samples):
        raise UnreadableFileError(f"{path.name}: has no questions; a LoCoMo file or `sample` does")
    return locomo_data(samples, turns)


def _first(data: DataSet, limit: int | None) -> DataSet:
    """Keep the first questions, and of the turns those of the users they are about."""
    questions = data.questions[:limit]
    users = {question.user_id for question in questions}
    return replace(data, questions=questions, turns=[turn for turn in data.turns if turn["user_id"] in users])


def _measure(data: DataSet, wanted: Wanted, console: Console) -> tuple[list[Scored], dict[str, Any]]:
    from memoryos_pipeline.cli.evaluating import bar, drain, ingest, move  # noqa: PLC0415
    from memoryos_pipeline.client.http import MemoryClient  # noqa: PLC0415

    with ExitStack() as stack:
        system = stack.enter_context(_system(here=wanted.here))
        client = stack.enter_context(MemoryClient(system.api_url, system.api_key))
        started = time.monotonic()
        ingest(client, data.turns, console)
        if wanted.tier is not Tier.AS_IS:
            move(client, system, data.turns, console=console, cold=wanted.tier is Tier.COLD)
        status = drain(client, console)
        ingested = time.monotonic() - started
        with bar(console, "questions", total=len(data.questions)) as advanced:
            scored = ask_all(client, data, kinds=wanted.kinds, advanced=lambda: advanced(1))
    noted = {
        "tiers": wanted.tier, "kinds": wanted.kinds, "turns": len(data.turns), "dead": status["dead"],
        "ingest_seconds": round(ingested, 1), "versions": _versions(),
    }  # fmt: skip
    return scored, noted


def _interrupt(_: int, __: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def _system(*, here: bool) -> Iterator["System"]:
    from memoryos_pipeline.cli.evaluating import System  # noqa: PLC0415
    from memoryos_pipeline.demo.system import own_system  # noqa: PLC0415

    if here:
        reach = find_connection(load_settings())
        yield System(reach.api_url, reach.api_key, reach.owner_url, reach.ledger_url)
        return
    with own_system() as (own, _):
        yield System(own.api_url, own.api_key, own.owner_url, own.ledger_url)


def _versions() -> dict[str, str]:
    """Return what was measured, as the environment of this command says."""
    from memoryos_pipeline.models.factory import build_embedder  # noqa: PLC0415

    settings = load_settings()
    embedder = build_embedder(settings)
    return {
        "product": __version__,
        "embedder": settings.embedder,
        "model": f"{embedder.model} {embedder.revision}",
        "language_model": settings.anthropic_model if settings.uses_anthropic else "extractive",
    }


def _table(report: dict[str, Any]) -> Table:
    table = Table("category", *SHOWN)
    for name, row in (*report["by_category"].items(), ("overall", report)):
        table.add_row(name, *(str(row.get(column, "")) for column in SHOWN))
    return table
