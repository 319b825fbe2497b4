"""`memoryos work`: one piece of work in words, and the switch of a kind. `memoryos wait`: until it came through."""

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.operating import operating
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.readmodels.work_story import WorkStory

app = typer.Typer(help="Look at one piece of work; stop a kind of work and let it go on.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line.")]
TIMES = ("created_at", "run_after", "enqueued_at", "claimed_at", "lease_until", "deferred_since", "finished_at")
LIMIT_COLUMNS = ("provider", "calls_per_minute", "calls_per_hour", "calls_at_once", "minute_calls", "hour_calls")
Kind = Annotated[str, typer.Argument(help="Kind of work, e.g. distill.")]


class Stage(StrEnum):
    """The stages a conversation can be waited for."""

    RECORDED = "recorded"
    SEALED = "sealed"
    SUMMARIZED = "summarized"
    EMBEDDED = "embedded"
    SEGMENTED = "segmented"
    DISTILLED = "distilled"
    MERGED = "merged"


@app.command()
def show(work_id: Annotated[int, typer.Argument(help="Id of the work.")], as_json: AsJson = False) -> None:
    """Show a work row: its tries, its lease, its errors, and in words what it waits for."""
    from memoryos_pipeline.readmodels.work_story import tell_work  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.store.dead_letters import find_work  # noqa: PLC0415

    with operating() as operator:
        tenant_id = find_work(operator.ledger, work_id).tenant_id
        with operator.owner.snapshot(tenant_id) as connection:
            story = tell_work(connection, tenant_id, work_id)
        tenant = operator.names.get(tenant_id, str(tenant_id))
    if as_json:
        typer.echo(json.dumps({"tenant": tenant, **story.as_json()}, ensure_ascii=False))
    else:
        _show(Console(), tenant, story)


@app.command()
def pause(
    kind: Kind,
    reason: Annotated[str, typer.Option(help="Why; shown wherever the pause is.")] = "paused by an operator",
    as_json: AsJson = False,
) -> None:
    """Stop a kind of work: what is running ends, nothing more of it is published or claimed. Nothing is lost."""
    from memoryos_pipeline.store.vigilance import pause_kind  # noqa: PLC0415 - other commands start without

    _check_kind(kind)
    with operating() as operator, operator.ledger.across_tenants() as connection:
        changed = pause_kind(connection, kind, paused_by="operator", reason=reason)
    told = f"{kind} work is paused" if changed else f"{kind} work was paused already"
    typer.echo(json.dumps({"kind": kind, "paused": True, "changed": changed}) if as_json else told)


@app.command()
def resume(kind: Kind, as_json: AsJson = False) -> None:
    """Let a paused kind of work go on."""
    from memoryos_pipeline.store.vigilance import resume_kind  # noqa: PLC0415

    with operating() as operator, operator.ledger.across_tenants() as connection:
        changed = resume_kind(connection, kind)
    told = f"{kind} work goes on" if changed else f"{kind} work was not paused"
    typer.echo(json.dumps({"kind": kind, "paused": False, "changed": changed}) if as_json else told)


@app.command()
def budget(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose, by name or id.")],
    tokens_per_day: Annotated[int, typer.Option(min=0, help="Tokens a day (UTC) at most; 0 takes the limit away.")],
    as_json: AsJson = False,
) -> None:
    """Bound what language models may cost a tenant a day. Work beyond it waits for the next day."""
    from memoryos_pipeline.store.keys import set_budget  # noqa: PLC0415

    with operating() as operator:
        tenant_id = operator.tenant(tenant)
        if tenant_id is not None:
            set_budget(operator.owner, tenant_id, tokens_per_day=tokens_per_day or None)
    told = f"at most {tokens_per_day} tokens a day" if tokens_per_day else "no limit"
    answer = {"tenant": tenant, "tokens_per_day": tokens_per_day or None}
    typer.echo(json.dumps(answer, ensure_ascii=False) if as_json else f"{tenant}: {told}")


@app.command()
def limit(
    provider: Annotated[
        str, typer.Option("--provider", help="Which, as `memoryos status` names it; * is all of them.")
    ],
    per_minute: Annotated[int, typer.Option(min=0, help="Calls a minute at most; 0 is without a limit.")] = 0,
    per_hour: Annotated[int, typer.Option(min=0, help="Calls an hour at most; 0 is without a limit.")] = 0,
    at_once: Annotated[int, typer.Option(min=0, help="Calls at once at most; 0 is without a limit.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Bound how often a provider of a language model is asked, by everybody together. Work beyond it waits."""
    from memoryos_pipeline.store.provider_limits import set_limit  # noqa: PLC0415

    bounds = {"calls_per_minute": per_minute, "calls_per_hour": per_hour, "calls_at_once": at_once}
    given = {name: bound or None for name, bound in bounds.items()}
    with operating() as operator:
        set_limit(operator.owner, provider, **given)
    told = ", ".join(f"{bound} {name.replace('_', ' ')}" for name, bound in given.items() if bound)
    answer = {"provider": provider, **given}
    typer.echo(json.dumps(answer, ensure_ascii=False) if as_json else f"{provider}: {told or 'no limit'}")


@app.command()
def limits(as_json: AsJson = False) -> None:
    """List what providers may be asked, and what was asked in the minute and the hour that run."""
    from memoryos_pipeline.store.provider_limits import list_limits  # noqa: PLC0415

    with operating() as operator, operator.owner.across_tenants() as connection:
        rows = [asdict(each) for each in list_limits(connection)]
    if as_json:
        typer.echo(json.dumps({"limits": rows}, ensure_ascii=False, default=str))
    elif not rows:
        typer.echo("There is no limit; `memoryos work limit --provider` sets one.")
    else:
        table = Table(*(name.replace("_", " ") for name in LIMIT_COLUMNS))
        for row in rows:
            table.add_row(*("" if row[name] is None else escape(str(row[name])) for name in LIMIT_COLUMNS))
        Console().print(table)


def _check_kind(kind: str) -> None:
    from memoryos_pipeline.domain.work import WorkKind  # noqa: PLC0415

    if kind not in set(WorkKind):
        end_with(Console(stderr=True), f"there is no kind of work {kind!r}; there are {', '.join(WorkKind)}")


@app.callback()
def work() -> None:
    """Look at one piece of work; stop a kind of work and let it go on."""


def wait(
    user_id: Annotated[str, typer.Option("--user", help="Whose conversation.")],
    conversation: Annotated[str, typer.Option("--conversation", help="Its name.")],
    agent_id: Annotated[str, typer.Option("--agent", help="With which agent.")] = "default",
    through: Annotated[Stage, typer.Option("--through", help="The stage to be through.")] = Stage.EMBEDDED,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait at most.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Wait until all turns that leave the hot buffer of a conversation have come through a stage."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415
    from memoryos_pipeline.client.http import MemoryClient  # noqa: PLC0415

    asked: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "through": through.value}
    try:
        reach = find_connection(load_settings())
        with MemoryClient(reach.api_url, reach.api_key) as client:
            marks = client.wait_through(conversation, **asked, timeout_seconds=timeout)
    except (NotConnectedError, MemoryClientError) as error:
        end_with(Console(stderr=True), str(error))
    if as_json:
        typer.echo(json.dumps(marks, ensure_ascii=False))
    else:
        hot = f"; {marks['hot_turns']} turns are hot" if marks["hot_turns"] else ""
        typer.echo(f"{through.value} through turn {marks[through]} of {marks['recorded']}{hot}")


def _show(console: Console, tenant: str, story: "WorkStory") -> None:
    row = story.row
    whose = f"{row['user_id']} with {row['agent_id']} (tenant {tenant})"
    console.print(f"work {row['work_id']}: {row['kind']} {row['subject_key']}", markup=False, highlight=False)
    console.print(story.waits_for, markup=False, highlight=False, style="bold", soft_wrap=True)
    for sentence in story.in_line:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    table = Table(show_header=False)
    for name, value in _facts(row, whose, story.queue).items():
        table.add_row(name, escape(value))
    console.print(table)
    for letter in story.letters:
        replayed = f"; replayed at {letter['replayed_at']:%Y-%m-%d %H:%M}" if letter["replayed_at"] else ""
        said = f"given up at {letter['at']:%Y-%m-%d %H:%M}: {letter['error_class']}: {letter['error']}{replayed}"
        console.print(said, markup=False, highlight=False, soft_wrap=True)


def _facts(row: dict[str, Any], whose: str, queue: str) -> dict[str, str]:
    tries = f"{row['attempts']} of {row['max_attempts']}, {row['deferrals']} put off, begun {row['executions']} times"
    facts = {
        "memory": whose,
        "state": row["state"],
        "queue": f"{queue} (task memoryos.{queue})",
        "tries": tries,
        "asked for": f"{row['generation']} times",
        "fence": str(row["fence"]),
        "owner": row["owner"] or "",
        "Celery id": row["task_id"] or "",
        "last error": ": ".join(filter(None, (row["last_error_class"], row["last_error"]))),
    }
    times = {name.removesuffix("_at").replace("_", " "): row[name] for name in TIMES}
    return {**facts, **{name: f"{at:%Y-%m-%d %H:%M:%S}" if at else "" for name, at in times.items()}}
