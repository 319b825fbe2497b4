"""`memoryos eval`: how much of what was said is found again, measured through the public API."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline import __version__
from memoryos_pipeline.cli.eval_data import keep_first, read_data
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.cli.readers import UnreadableFileError
from memoryos_pipeline.domain.ranking_profiles import NAMES
from memoryos_pipeline.evaluation.asking import Manner, Scored, ask_all
from memoryos_pipeline.evaluation.generated import generated_data
from memoryos_pipeline.evaluation.questions import DataSet
from memoryos_pipeline.evaluation.report import BRIEF, across_tiers, compare, summarize, summarize_ablation
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.cli.evaluating import System
    from memoryos_pipeline.client.http import MemoryClient

DEFAULT = "default"
SHOWN = ("n", "r5", "r10", "r20", "all10", "ndcg10", "mrr", "session5", "rec500", "rec1000", "rec2000")

app = typer.Typer(name="eval", help="Measure how well this memory remembers.", no_args_is_help=True)


class Tier(StrEnum):
    """Where memory lies when it is asked."""

    AS_IS = "as-is"
    WARM = "warm"
    COLD = "cold"
    EACH = "each"

    @property
    def steps(self) -> tuple["Tier", ...]:
        """Where memory is asked, one after the other."""
        return (Tier.AS_IS, Tier.WARM, Tier.COLD) if self is Tier.EACH else (self,)


class Kind(StrEnum):
    """What may be recalled."""

    TURN = "turn"
    KNOWLEDGE = "knowledge"
    PAGE = "page"


Profile = StrEnum("Profile", {name.upper(): name for name in NAMES})  # type: ignore[misc]
"""How candidates are ranked."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    tier: Tier
    kinds: tuple[str, ...] | None
    here: bool
    profiles: tuple[str, ...] = ()
    ablate: bool = False
    contexts: bool = True

    @property
    def manners(self) -> dict[str, Manner]:
        """How questions are asked, by profile; contexts and ablation belong to the first."""
        first, *others = self.profiles or (DEFAULT,)
        named = {
            first: Manner(
                self.kinds, first if self.profiles else None, with_contexts=self.contexts, to_ablate=self.ablate
            )
        }
        return named | {name: Manner(self.kinds, name, with_contexts=False) for name in others}


@app.callback()
def _group() -> None:
    """Measure how well this memory remembers."""


@app.command()
def recall(  # noqa: PLR0913, PLR0917 - one option each
    data: Annotated[
        str | None, typer.Option(help="A LoCoMo file, a MADial-Bench directory, or `sample` for the packaged talks.")
    ] = None,
    corpus: Annotated[bool, typer.Option("--corpus", help="Our own generated talks, four languages.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of a table.")] = False,
    limit_questions: Annotated[int | None, typer.Option(min=1, help="Ask only the first questions.")] = None,
    tiers: Annotated[
        Tier, typer.Option(help="Seal (warm) or archive (cold) everything before asking, or ask in each.")
    ] = Tier.AS_IS,
    kinds: Annotated[list[Kind] | None, typer.Option(help="Recall only this; may be repeated.")] = None,
    profile: Annotated[
        list[Profile] | None, typer.Option(help="Rank by this; several are compared on the same memory.")
    ] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Say what R@10 is without each signal.")] = False,
    contexts: Annotated[bool, typer.Option(help="Measure packed contexts too, three a question.")] = True,
    here: Annotated[bool, typer.Option("--here", help="Use the running system instead of one of its own.")] = False,
) -> None:
    """Put conversations in, wait until they are memory, ask what is known about them, and score what is found."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415

    console = Console(stderr=True)
    if here and Tier.COLD in tiers.steps:
        raise typer.BadParameter(
            "moves the clock, which is not done to a running system", param_hint=f"--tiers {tiers}"
        )
    if (data is None) is not corpus:
        raise typer.BadParameter("name a file, or say --corpus", param_hint="--data")
    started = time.monotonic()
    signal.signal(signal.SIGTERM, _interrupt)
    wanted = Wanted(
        tiers, tuple(kinds) if kinds else None, here, profiles=tuple(map(str, profile or ())), ablate=ablate,
        contexts=contexts,
    )  # fmt: skip
    try:
        asked = keep_first(generated_data() if data is None else read_data(data), limit_questions)
        report = _measure(asked, wanted, console)
    except (UnreadableFileError, NotConnectedError, MemoryClientError, EmbeddedServerError) as error:
        end_with(console, str(error))
    except KeyboardInterrupt:
        end_with(console, "stopped")
    report |= {**asked.dropped, "seconds": round(time.monotonic() - started, 1)}
    if as_json:
        typer.echo(json.dumps(report))
    else:
        _show(report, Console())


def _measure(data: DataSet, wanted: Wanted, console: Console) -> dict[str, Any]:
    from memoryos_pipeline.cli.evaluating import drain, index_tails, ingest, move  # noqa: PLC0415
    from memoryos_pipeline.client.http import MemoryClient  # noqa: PLC0415

    reports: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        system = stack.enter_context(_system(here=wanted.here))
        client = stack.enter_context(MemoryClient(system.api_url, system.api_key))
        started = time.monotonic()
        ingest(client, data.turns, console)
        for tier in wanted.tier.steps:
            if tier is not Tier.AS_IS:
                move(client, system, data.turns, console=console, cold=tier is Tier.COLD)
            else:
                drain(client, console)
                index_tails(system)
            status = drain(client, console)
            ready = round(time.monotonic() - started, 1)
            by_profile = {name: _ask(client, data, name, manner, console) for name, manner in wanted.manners.items()}
            reports[tier] = {
                **_summary(by_profile, ablate=wanted.ablate),
                "tiers": wanted.tier, "kinds": wanted.kinds, "turns": len(data.turns), "dead": status["dead"],
                "ingest_seconds": ready, "versions": _versions(),
            }  # fmt: skip
    return across_tiers(reports)


def _ask(client: "MemoryClient", data: DataSet, name: str, manner: Manner, console: Console) -> list[Scored]:
    from memoryos_pipeline.cli.evaluating import bar  # noqa: PLC0415

    with bar(console, f"questions, {name}", total=len(data.questions)) as advanced:
        return ask_all(client, data, manner=manner, advanced=lambda: advanced(1))


def _summary(by_profile: dict[str, list[Scored]], *, ablate: bool) -> dict[str, Any]:
    """Report the first profile in full, the others beside it."""
    name, scored = next(iter(by_profile.items()))
    report = {"profile": name, **summarize(scored)}
    if len(by_profile) > 1:
        report["profiles"] = compare(by_profile)
    if ablate:
        report["ablation_r10"] = summarize_ablation(scored)
    return report


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


def _show(report: dict[str, Any], console: Console) -> None:
    table = Table("category", *SHOWN)
    for name, row in (*report["by_category"].items(), ("overall", report)):
        table.add_row(name, *(str(row.get(column, "")) for column in SHOWN))
    console.print(table)
    if "profiles" in report:
        compared = Table("profile", *BRIEF)
        for name, row in report["profiles"].items():
            compared.add_row(name, *(str(row[column]) for column in BRIEF))
        console.print(compared)
    if "ablation_r10" in report:
        left_out = Table("without", "R@10")
        for name, r10 in report["ablation_r10"].items():
            left_out.add_row(name, str(r10))
        console.print(left_out)
    if report["auroc5"] is not None:
        console.print(f"`not said by that person`, AUROC: {report['auroc5']}")
