"""`memoryos eval conflicts` and `memoryos corpus make`: lives that change, and what is held to be true of them."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.evaluating import bar
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.evaluation.corpus import LANGUAGES, PEOPLE, Corpus, make_corpus
from memoryos_pipeline.evaluation.corpus_phrases import SCORED, Bank
from memoryos_pipeline.settings import load_settings

# What opens a database is imported where it is opened: other commands start without it.

SEEDS = 5
EVERY_BANK = ",".join(SCORED)
Banks = Annotated[str, typer.Option(help="Whose phrases, with commas: first, second, ...; lives take turns.")]

corpus = typer.Typer(
    name="corpus", help="Generated lives of which it is known what is true when.", no_args_is_help=True
)


@corpus.callback()
def _group() -> None:
    """Generated lives of which it is known what is true when."""


@corpus.command()
def make(
    seed: Annotated[int, typer.Option(help="The same seed makes the same lives.")] = 1,
    language: Annotated[str, typer.Option(help="en, ja, ko or zh.")] = "en",
    people: Annotated[int, typer.Option(min=1, help="How many lives.")] = PEOPLE,
    banks: Banks = EVERY_BANK,
) -> None:
    """Print a corpus as JSON lines: every turn with what it says to be so, then one line with what must be so."""
    if language not in LANGUAGES:
        raise typer.BadParameter(f"unknown: {language}", param_hint="--language")
    made = make_corpus(language, seed, banks=_chosen(banks), people=people)
    for line in made.lines:
        typer.echo(
            json.dumps(
                {**asdict(line), "at": line.at.isoformat(), "conversation_id": line.conversation_id}, ensure_ascii=False
            )
        )
    truth = {name: pairs for name, pairs in asdict(made).items() if name != "lines"}
    typer.echo(json.dumps({"truth": truth}))


def conflicts(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of a table.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="How many corpora a language; the worst one counts.")] = SEEDS,
    languages: Annotated[str, typer.Option(help="Which languages, with commas.")] = ",".join(LANGUAGES),
    people: Annotated[int, typer.Option(min=1, help="Lives a corpus; fewer than 12 is for a quick look.")] = PEOPLE,
    banks: Banks = EVERY_BANK,
) -> None:
    """Let a pipeline of its own learn generated lives, and count where it holds on to what is over."""
    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415

    console = Console(stderr=True)
    unknown = sorted(set(languages.split(",")) - set(LANGUAGES))
    if unknown:
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}", param_hint="--languages")
    told = _chosen(banks)
    corpora = [
        make_corpus(lang, seed, banks=told, people=people)
        for lang in languages.split(",")
        for seed in range(1, seeds + 1)
    ]
    try:
        report = {**_measure(corpora, console), "banks": list(told)}
    except EmbeddedServerError as error:
        end_with(console, str(error))
    except KeyboardInterrupt:
        end_with(console, "stopped")
    if as_json:
        typer.echo(json.dumps(report))
    else:
        Console().print(_table(report))
    if report["missed"]:
        raise typer.Exit(1)


def _chosen(banks: str) -> list[Bank]:
    unknown = sorted(set(banks.split(",")) - set(get_args(Bank)))
    if unknown:
        raise typer.BadParameter(
            f"unknown: {', '.join(unknown)}; there are {', '.join(get_args(Bank))}", param_hint="--banks"
        )
    return cast("list[Bank]", banks.split(","))


def _measure(corpora: Sequence[Corpus], console: Console) -> dict[str, Any]:
    from memoryos_pipeline.evaluation.conflicts import summarize_runs  # noqa: PLC0415
    from memoryos_pipeline.evaluation.conflicts_run import live_through, own_pipeline  # noqa: PLC0415
    from memoryos_pipeline.models.factory import build_embedder  # noqa: PLC0415

    started = time.monotonic()
    embedder = build_embedder(load_settings())
    total = sum(len(corpus.lines) for corpus in corpora)
    with own_pipeline(embedder) as pipeline, bar(console, "turns", total=total) as advanced:
        runs = live_through(pipeline, corpora, advanced=advanced)
    return {
        **summarize_runs(runs),
        "turns": total,
        "embedder": f"{embedder.model} {embedder.revision}",
        "language_model": "extractive",
        "seconds": round(time.monotonic() - started, 1),
    }


def _table(report: dict[str, Any]) -> Table:
    measures = [*report["targets"], "corrections_linked"]
    table = Table("language", *measures, title="worst seed")
    for lang, row in report["by_language"].items():
        table.add_row(lang, *(f"{row[name]:g}" for name in measures))
    table.add_row("target", *(f"{report['targets'].get(name, '')}" for name in measures))
    table.add_row("out of", *(str(min(of[name] for of in report["denominators"].values())) for name in measures))
    return table
