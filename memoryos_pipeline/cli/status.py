"""`memoryos status`: how far the pipeline is, and how much lies in which tier."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.show import fetch, show_answer

STATES = ("ready", "waiting", "leased", "dead")


def status(
    user_id: Annotated[str | None, typer.Option("--user", help="Tiers of this user only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line: `pipeline` and `tiers`.")] = False,
) -> None:
    """Tell what the pipeline still owes, by kind of work, and what lies in each tier."""
    answer = {"pipeline": fetch("/v1/pipeline"), "tiers": fetch("/v1/tiers", {"user_id": user_id})}
    show_answer(answer, as_json=as_json, present=_show)


def _show(console: Console, answer: dict[str, Any]) -> None:
    tiers = Table("tier", "what", "how many", title="tiers")
    for row in answer["tiers"]["tiers"]:
        tiers.add_row(row["tier"], row["what"], str(row["count"]))
    console.print(tiers)
    pipeline = answer["pipeline"]
    work = Table("kind", "queue", *STATES, "oldest (s)", title="work")
    for kind, row in pipeline["by_kind"].items():
        counts = [str(row[state] or "") for state in STATES]
        work.add_row(kind, row["queue"], *counts, f"{row['oldest_ready_age_seconds']:.0f}")
    console.print(work)
    console.print("Everything is done." if pipeline["drained"] else f"{pipeline['owed']} pieces of work are owed.")
    if pipeline["dead"]:
        console.print(
            f"{pipeline['dead']} were given up; `memoryos dead list` says why, ops/runbooks/stuck.md what to do.",
            style="red",
        )
