"""`memoryos eval ablation`: what is remembered without one tier or another."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.evaluating import bar
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.evaluation.corpus import LANGUAGES, make_corpus
from memoryos_pipeline.evaluation.generated import generated_data

if TYPE_CHECKING:
    from memoryos_pipeline.evaluation.tiers import Told, Variant

# What opens a database is imported where it is opened: other commands start without it.

SIZE = 3
COLUMNS = {
    "r10": "R@10", "facts_found": "facts", "old_truth_live": "old truth", "live_items": "items",
    "context_tokens": "tokens",
}  # fmt: skip


def ablation(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line instead of a table.")] = False,
    size: Annotated[int, typer.Option(min=1, help="Lives a language; the talks are the same.")] = SIZE,
    languages: Annotated[str, typer.Option(help="Which languages, with commas.")] = ",".join(LANGUAGES),
    seed: Annotated[int, typer.Option(help="The same seed makes the same lives.")] = 1,
) -> None:
    """Let memories of their own live the same months, each without a tier, and say what is found, true and shown."""
    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415

    console = Console(stderr=True)
    chosen = languages.split(",")
    if unknown := sorted(set(chosen) - set(LANGUAGES)):
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}", param_hint="--languages")
    try:
        report = _measure(chosen, size, seed, console)
    except EmbeddedServerError as error:
        end_with(console, str(error))
    except KeyboardInterrupt:
        end_with(console, "stopped")
    if as_json:
        typer.echo(json.dumps(report))
    else:
        Console().print(_table(report))


def _measure(languages: Sequence[str], size: int, seed: int, console: Console) -> dict[str, Any]:
    from memoryos_pipeline.evaluation.tiers import TOKEN_BUDGET, VARIANTS, Told  # noqa: PLC0415
    from memoryos_pipeline.models.hashing import HashingEmbedder  # noqa: PLC0415

    started = time.monotonic()
    told = {lang: Told(make_corpus(lang, seed, people=size), generated_data([lang])) for lang in languages}
    variants = {name: _remember(name, variant, told, console) for name, variant in VARIANTS.items()}
    return {
        "variants": variants,
        "lives_a_language": size,
        "turns": sum(len(each.lines) for each in told.values()),
        "questions": sum(len(each.talks.questions) for each in told.values()),
        "token_budget": TOKEN_BUDGET,
        "embedder": HashingEmbedder.model,
        "language_model": "extractive",
        "seconds": round(time.monotonic() - started, 1),
    }


def _remember(name: str, variant: "Variant", told: dict[str, "Told"], console: Console) -> dict[str, Any]:
    from memoryos_pipeline.evaluation.conflicts_run import own_pipeline  # noqa: PLC0415
    from memoryos_pipeline.evaluation.tiers import across_languages, ask_all, measure, remember  # noqa: PLC0415
    from memoryos_pipeline.models.hashing import HashingEmbedder  # noqa: PLC0415

    lines = [line for each in told.values() for line in each.lines]
    questions = sum(len(each.talks.questions) for each in told.values())
    by_language = {}
    with own_pipeline(HashingEmbedder(), policy=variant.policy, kinds=variant.works) as pipeline:
        with bar(console, f"{name}: turns", total=len(lines)) as advanced:
            remember(pipeline, lines, advanced=advanced)
        with bar(console, f"{name}: questions", total=questions) as advanced:
            for lang, each in told.items():
                asked = ask_all(pipeline, variant, each.talks.questions, advanced=advanced)
                by_language[lang] = measure(pipeline, variant, each, asked)
    return across_languages(by_language)


def _table(report: dict[str, Any]) -> Table:
    table = Table("memory", "in", *COLUMNS.values())
    for name, row in report["variants"].items():
        table.add_row(name, "all", *map(_shown, (row[column] for column in COLUMNS)))
        for lang, of_lang in row["by_language"].items():
            table.add_row("", lang, *map(_shown, (of_lang[column] for column in COLUMNS)), style="dim")
        table.add_section()
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
