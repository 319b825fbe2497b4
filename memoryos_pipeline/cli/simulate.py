"""`memoryos simulate`: what a policy does to a page and a statement over simulated days, in words and as curves."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.output import end_with

SHOWN_ROWS = 24


def simulate(
    settings: Annotated[list[str] | None, typer.Argument(help="Changes to the preset, as name=value.")] = None,
    preset: Annotated[str, typer.Option("--preset", help="The policy to begin with.")] = "default",
    days: Annotated[int, typer.Option(min=1, max=36_500, help="How long.")] = 180,
    use_every: Annotated[float, typer.Option(min=0, help="Used every so many days; 0 for never.")] = 0.0,
    svg: Annotated[Path | None, typer.Option(help="Draw heat and weight into this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Replay the rules of a policy on simulated time; nothing is stored and no server is needed."""
    from memoryos_pipeline.cli.curves import draw  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.domain import policies_presets as presets  # noqa: PLC0415
    from memoryos_pipeline.domain.simulation import Habit  # noqa: PLC0415
    from memoryos_pipeline.domain.simulation import simulate as replay  # noqa: PLC0415

    try:
        changes = dict(presets.parse_setting(each) for each in settings or [])
        policy = presets.changed(presets.find_preset(preset), changes)
    except presets.InvalidPolicyError as error:
        end_with(Console(stderr=True), str(error))
    life = replay(policy, Habit(use_every_days=use_every), days=days)
    if svg is not None:
        heat = [(each.day, each.heat) for each in life.samples]
        weight = [(each.day, each.weight) for each in life.samples]
        svg.write_text(draw({"page heat": heat, "weight": weight}, days=days, title=preset), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(asdict(life)))
        return
    console = Console()
    table = Table("day", "page heat", "weight")
    for sample in life.samples[:: max(1, days // SHOWN_ROWS)]:
        table.add_row(str(sample.day), f"{sample.heat:.3f}", f"{sample.weight:.3f}")
    console.print(table)
    for happening in life.happenings:
        console.print(f"day {happening.day:g}: {happening.what}", highlight=False)
