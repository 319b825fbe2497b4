"""`memoryos dead`: work that was given up. Its reason, another try, or a farewell."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.operating import Operator, operating
from memoryos_pipeline.cli.output import end_with

if TYPE_CHECKING:
    from memoryos_pipeline.store.dead_letters import DeadLetter, DeadWork, Outcome

app = typer.Typer(help="Work that was given up: list, show, replay, discard.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line.")]
KindOption = Annotated[str | None, typer.Option("--kind", help="Of this kind of work only, e.g. embed.")]
TenantOption = Annotated[str | None, typer.Option("--tenant", help="Of this tenant only, by name or id.")]
WorkIds = Annotated[list[int] | None, typer.Argument(help="Ids of work, as `dead list` shows them.")]
All = Annotated[bool, typer.Option("--all", help="Everything that is dead, within --kind and --tenant.")]
SHOWN_IDS = 20


@app.command(name="list")
def list_(
    kind: KindOption = None,
    tenant: TenantOption = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows at most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List what was given up, with the reason."""
    from memoryos_pipeline.store.dead_letters import list_dead  # noqa: PLC0415 - other commands start without

    _check_kind(kind)
    with operating() as operator:
        found = list_dead(operator.ledger, kind=kind, tenant_id=operator.tenant(tenant), limit=limit + 1)
        rows = [_row(operator, work) for work in found[:limit]]
    if as_json:
        typer.echo(json.dumps({"dead": rows, "more": len(found) > limit}, ensure_ascii=False))
        return
    console = Console()
    console.print(_table(rows) if rows else "Nothing was given up.")
    if len(found) > limit:
        console.print(f"The first {limit}; there are more.", style="dim")


@app.command()
def show(work_id: Annotated[int, typer.Argument(help="Id of the work.")], as_json: AsJson = False) -> None:
    """Show one dead row and every time it was given up."""
    from memoryos_pipeline.store.dead_letters import find_work, list_letters  # noqa: PLC0415

    with operating() as operator:
        work = find_work(operator.ledger, work_id)
        letters = list_letters(operator.ledger, work)
        row = _row(operator, work)
    if not letters:
        end_with(Console(stderr=True), f"work {work_id} was never given up; it is {work.state}")
    if as_json:
        typer.echo(json.dumps({**row, "letters": [_letter(each) for each in letters]}, ensure_ascii=False))
        return
    console = Console()
    console.print(_table([row]))
    for letter in letters:
        replayed = f"; replayed at {letter.replayed_at:%Y-%m-%d %H:%M}" if letter.replayed_at else ""
        said = f"{letter.at:%Y-%m-%d %H:%M} {letter.error_class}: {letter.error}{replayed}"
        console.print(said, markup=False, highlight=False)


@app.command()
def replay(
    work_ids: WorkIds = None,
    everything: All = False,
    kind: KindOption = None,
    tenant: TenantOption = None,
    as_json: AsJson = False,
) -> None:
    """Try dead work again, from its first attempt on. Asking twice changes nothing more."""
    from memoryos_pipeline.store.dead_letters import replay as run  # noqa: PLC0415

    chosen = _chosen(work_ids, everything=everything, kind=kind)
    with operating() as operator:
        outcomes = [run(operator.owner, operator.ledger, ids) for ids in _batches(operator, chosen, kind, tenant)]
    _report("replayed", outcomes, as_json=as_json)


@app.command()
def discard(
    work_ids: WorkIds = None,
    everything: All = False,
    kind: KindOption = None,
    tenant: TenantOption = None,
    reason: Annotated[str, typer.Option(help="Why it is not needed; kept with the row.")] = "discarded by an operator",
    as_json: AsJson = False,
) -> None:
    """Cancel dead work for good, keeping the reason. Asking twice changes nothing more."""
    from memoryos_pipeline.store.dead_letters import discard as run  # noqa: PLC0415

    chosen = _chosen(work_ids, everything=everything, kind=kind)
    with operating() as operator:
        batches = _batches(operator, chosen, kind, tenant)
        outcomes = [run(operator.owner, operator.ledger, ids, reason=reason) for ids in batches]
    _report("discarded", outcomes, as_json=as_json)


def _chosen(work_ids: list[int] | None, *, everything: bool, kind: str | None) -> list[int] | None:
    """Return the ids that were named, None for all; neither or both ends the command."""
    _check_kind(kind)
    if bool(work_ids) == everything:
        end_with(Console(stderr=True), "name ids of dead work, or say --all (with --kind or --tenant to choose)")
    return work_ids or None


def _check_kind(kind: str | None) -> None:
    from memoryos_pipeline.domain.work import WorkKind  # noqa: PLC0415

    if kind is not None and kind not in set(WorkKind):
        end_with(Console(stderr=True), f"there is no kind of work {kind!r}; there are {', '.join(WorkKind)}")


def _batches(operator: Operator, chosen: list[int] | None, kind: str | None, tenant: str | None) -> list[list[int]]:
    from memoryos_pipeline.store.dead_letters import find_work, iterate_dead  # noqa: PLC0415

    tenant_id = operator.tenant(tenant)
    if chosen is None:
        return list(iterate_dead(operator.ledger, kind=kind, tenant_id=tenant_id))
    if kind is None and tenant_id is None:
        return [chosen]
    named = [find_work(operator.ledger, work_id) for work_id in chosen]
    return [[work.work_id for work in named if kind in (None, work.kind) and tenant_id in (None, work.tenant_id)]]


def _report(verb: str, outcomes: "list[Outcome]", *, as_json: bool) -> None:
    changed = [work_id for outcome in outcomes for work_id in outcome.changed]
    already = {work_id: state for outcome in outcomes for work_id, state in outcome.already.items()}
    if as_json:
        left = {str(work_id): state for work_id, state in already.items()}
        typer.echo(json.dumps({verb: len(changed), "work_ids": changed, "not_dead": left}))
        return
    typer.echo(f"{len(changed)} {verb}")
    for state, count in sorted(Counter(already.values()).items()):
        ids = [str(work_id) for work_id, its in already.items() if its == state][:SHOWN_IDS]
        typer.echo(f"{count} not dead but {state}, left alone: {', '.join(ids)}{', …' if count > SHOWN_IDS else ''}")


def _row(operator: Operator, work: "DeadWork") -> dict[str, Any]:
    return {
        "work_id": work.work_id,
        "tenant": operator.names.get(work.tenant_id, str(work.tenant_id)),
        "kind": work.kind,
        "subject": work.subject_key,
        "state": work.state,
        "attempts": work.attempts,
        "max_attempts": work.max_attempts,
        "given_up_at": work.finished_at.isoformat() if work.finished_at else None,
        "error_class": work.error_class,
        "error": work.error,
        "replayed_at": work.replayed_at.isoformat() if work.replayed_at else None,
    }


def _letter(letter: "DeadLetter") -> dict[str, Any]:
    return {
        "fence": letter.fence,
        "at": letter.at.isoformat(),
        "error_class": letter.error_class,
        "error": letter.error,
        "replayed_at": letter.replayed_at.isoformat() if letter.replayed_at else None,
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("work", "tenant", "kind", "subject", "tries", "given up", "reason")
    for row in rows:
        reason = f"{row['error_class']}: {row['error']}" if row["error_class"] else "none was kept"
        tries = f"{row['attempts']}/{row['max_attempts']}"
        when = (row["given_up_at"] or "")[:16].replace("T", " ")
        shown = (str(row["work_id"]), row["tenant"], row["kind"], row["subject"], tries, when, reason)
        table.add_row(*map(escape, shown))
    return table
