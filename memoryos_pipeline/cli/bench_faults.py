"""`memoryos bench faults`: processes killed, brokers emptied and databases restarted under load, and what that cost."""

import json
import secrets
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table


def faults(  # noqa: PLR0913, PLR0917 - one option each
    turns: Annotated[int, typer.Option(min=100, help="Turns to send, both ways in.")] = 2_000,
    kills: Annotated[int, typer.Option(min=0, help="SIGKILLs, spread over work kinds, ingest, relay, API.")] = 24,
    flushes: Annotated[int, typer.Option(min=0, help="FLUSHALLs of the broker.")] = 5,
    database_restarts: Annotated[int, typer.Option(min=0, help="Restarts of Postgres, fast and at once.")] = 2,
    freezes: Annotated[int, typer.Option(min=0, help="Workers stopped past their lease, then let go on.")] = 3,
    seed: Annotated[int | None, typer.Option(help="Repeats the turns and the order of faults of a run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Break a system of its own while turns are sent to it, and count what was lost or doubled: nothing.

    Hashing embedder and extractive model; ends with 1 when anything was lost, doubled, unexpected or left broken.
    """
    from memoryos_pipeline.faults.campaign import NARROW, Campaign, Plan  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.faults.cluster import Cluster  # noqa: PLC0415
    from memoryos_pipeline.faults.ground import temporary_ground  # noqa: PLC0415

    seed = secrets.randbelow(2**32) if seed is None else seed
    told = Console(stderr=True)
    told.print(f"seed {seed}; repeat the turns and the order of faults with --seed {seed}")
    plan = Plan(
        turns=turns, kills=kills, flushes=flushes, database_restarts=database_restarts, seed=seed, freezes=freezes
    )
    with temporary_ground() as ground, Cluster(ground, **NARROW) as cluster:
        figures = Campaign(cluster, plan, say=told.print).run()
    if as_json:
        typer.echo(json.dumps(figures, ensure_ascii=False))
    else:
        Console().print(_table(figures))
    if figures["wrongs"]:
        raise typer.Exit(1)


def _table(figures: dict[str, Any]) -> Table:
    table = Table("figure", "value")
    for name, value in figures.items():
        if name != "wrongs" or value:
            table.add_row(name.replace("_", " "), value if isinstance(value, str) else json.dumps(value))
    return table
