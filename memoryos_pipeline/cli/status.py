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
    for sentence in _trouble(pipeline):
        console.print(sentence, style="red", markup=False, highlight=False, soft_wrap=True)
    for sentence in _spending(pipeline):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if pipeline["dead"]:
        console.print(
            f"{pipeline['dead']} were given up; `memoryos dead list` says why, ops/runbooks/stuck.md what to do.",
            style="red",
        )


def _trouble(pipeline: dict[str, Any]) -> list[str]:
    """Return what needs a person; a paused kind that no relay has told of yet is told of here."""
    told = {alarm["subject"] for alarm in pipeline["alarms"]}
    paused = [
        f"{each['kind']} work is paused: {each['reason']}; `memoryos work resume {each['kind']}` lets it go on"
        for each in pipeline["paused"]
        if each["kind"] not in told
    ]
    return [*(alarm["sentence"] for alarm in pipeline["alarms"]), *paused]


def _spending(pipeline: dict[str, Any]) -> list[str]:
    budget = pipeline["budget"]
    cap = f" of {budget['tokens_per_day']}" if budget["tokens_per_day"] else ""
    told = [f"{budget['spent_today']}{cap} tokens spent today"] if cap or budget["spent_today"] else []
    for each in pipeline["providers"]:
        if each["phase"] != "closed":
            told.append(f"calls to {each['provider']} are paused until {each['retry_at']}: {each['reason']}")
    return told
