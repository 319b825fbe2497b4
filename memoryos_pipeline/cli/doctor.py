"""`memoryos doctor`: every broken invariant in a sentence, what can be mended, and whether the ground is firm."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.reach import NotConnectedError, Reach, find_connection
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.store.database import Database
    from memoryos_pipeline.store.durability import Check

BROKER_SECONDS = 2.0


def doctor(
    at_rest: Annotated[
        bool, typer.Option("--at-rest", help="The pipeline is drained: any owed work is wrong.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend first what can be mended; what is left is told.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON line: `checks`, `violations`, `last_scheduled_run`, `mended`.")
    ] = False,
) -> None:
    """Check invariants, database and broker. Ends with 1 when anything is wrong, and says what repairs it."""
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415 - other commands start without

    try:
        report = _examine(find_connection(load_settings(), needs_key=False), at_rest=at_rest, repair=repair)
    except NotConnectedError as error:
        end_with(Console(stderr=True), str(error))
    except OperationalError:
        end_with(Console(stderr=True), "the database does not answer; is `memoryos up` running?")
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _show(Console(), report)
    if report["violations"] or not all(check["is_good"] for check in report["checks"]):
        raise typer.Exit(1)


def _examine(reach: Reach, *, at_rest: bool, repair: bool) -> dict[str, Any]:
    from memoryos_pipeline.store.database import Database  # noqa: PLC0415

    owner = Database(reach.owner_url, pool_size=1, application_name="memoryos-doctor")
    ledger = Database(reach.ledger_url, pool_size=1, application_name="memoryos-doctor")
    try:
        checks = [_schema(owner), *_durability(owner), _broker(reach.broker_url)]
        is_new = checks[0].is_good
        checks += _alarms(ledger) if is_new else []
        run = _last_run(ledger) if is_new else None
        mended = _repair(owner, ledger) if repair and is_new else []
        checks += [_marks(owner, ledger), _vectors(owner, ledger)] if is_new else []
        violations = _violations(owner, ledger, at_rest=at_rest) if is_new else []
    finally:
        owner.dispose()
        ledger.dispose()
    named = [{"name": check.name, "is_good": check.is_good, "sentence": check.sentence} for check in checks]
    report = {"checks": named, "violations": violations, "last_scheduled_run": run}
    return {**report, **({"mended": mended} if repair else {})}


def _repair(owner: "Database", ledger: "Database") -> list[dict[str, str]]:
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415
    from memoryos_pipeline.store.repair import repair_leases, repair_tenant  # noqa: PLC0415

    tenants = list_tenants(owner, ledger)
    names = {tenant.tenant_id: tenant.name for tenant in tenants}
    mended = repair_leases(ledger)
    for tenant in tenants:
        found = repair_tenant(owner, tenant.tenant_id, max_attempts=load_settings().max_attempts)
        mended += [(tenant.tenant_id, each) for each in found]
    return [
        {"tenant": names[tenant_id], "what": each.what, "subject": each.subject, "sentence": each.sentence}
        for tenant_id, each in mended
    ]


def _schema(owner: "Database") -> "Check":
    from memoryos_pipeline.store.durability import Check  # noqa: PLC0415
    from memoryos_pipeline.store.migrate import pending_migrations  # noqa: PLC0415

    is_old = pending_migrations(owner)
    return Check(
        "schema", not is_old, "It is older than this code; run `memoryos migrate`." if is_old else "It is up to date."
    )


def _marks(owner: "Database", ledger: "Database") -> "Check":
    from memoryos_pipeline.store.durability import Check  # noqa: PLC0415
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415
    from memoryos_pipeline.store.marks import count_unread  # noqa: PLC0415

    unread = 0
    for tenant in list_tenants(owner, ledger):
        with owner.transaction(tenant.tenant_id) as connection:
            unread += count_unread(connection, tenant.tenant_id)
    told = "Every indexed turn was read by the rules of this code."
    behind = f"{unread} indexed turns were not; recall ranks them worse: `memoryos doctor --repair` reads them again."
    return Check("marks", not unread, behind if unread else told)


def _vectors(owner: "Database", ledger: "Database") -> "Check":
    from memoryos_pipeline.models.factory import build_embedder  # noqa: PLC0415
    from memoryos_pipeline.store.durability import Check  # noqa: PLC0415
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415
    from memoryos_pipeline.store.reembedding import lacks_vectors  # noqa: PLC0415

    embedder = build_embedder(load_settings())
    lacking = [each.name for each in list_tenants(owner, ledger) if lacks_vectors(owner, each.tenant_id, embedder)]
    if not lacking:
        return Check("vectors", True, f"All that was indexed has a vector of {embedder.model}.")
    told = f"Not all of {', '.join(lacking)} has vectors of {embedder.model}, which the settings name"
    return Check("vectors", False, f"{told}: words find it meanwhile; run `memoryos reembed`.")


def _alarms(ledger: "Database") -> "list[Check]":
    """Return what the relay has found wrong, and what is paused, one check each; one good check when nothing is."""
    from memoryos_pipeline.domain.alarms import pause_alarm  # noqa: PLC0415
    from memoryos_pipeline.store.durability import Check  # noqa: PLC0415
    from memoryos_pipeline.store.vigilance import list_alarms, list_paused  # noqa: PLC0415

    with ledger.across_tenants() as connection:
        sentences = {(each.name, each.subject): each.sentence for each in list_alarms(connection)}
        paused = [pause_alarm(each.kind, reason=each.reason) for each in list_paused(connection)]
    sentences |= {(each.name, each.subject): each.sentence for each in paused}
    found = [Check(name.replace("_", " "), False, sentence) for (name, _), sentence in sorted(sentences.items())]
    return found or [Check("alarms", True, "None is raised, and nothing is paused.")]


def _last_run(ledger: "Database") -> dict[str, Any] | None:
    from memoryos_pipeline.readmodels.scheduled_doctor import last_run  # noqa: PLC0415

    with ledger.across_tenants() as connection:
        run = last_run(connection)
    return run.as_json() if run else None


def _durability(owner: "Database") -> "list[Check]":
    from memoryos_pipeline.store.durability import check_durability  # noqa: PLC0415

    with owner.across_tenants() as connection:
        return check_durability(connection)


def _broker(url: str) -> "Check":
    from redis import Redis, RedisError  # noqa: PLC0415

    from memoryos_pipeline.store.durability import Check  # noqa: PLC0415

    broker = Redis.from_url(url, socket_timeout=BROKER_SECONDS, socket_connect_timeout=BROKER_SECONDS)
    try:
        broker.ping()
    except RedisError as error:
        return Check(
            "broker", False, f"It does not answer ({type(error).__name__}); nothing is lost, work waits. Start it."
        )
    finally:
        broker.close()
    return Check("broker", True, "It answers.")


def _violations(owner: "Database", ledger: "Database", *, at_rest: bool) -> list[dict[str, str]]:
    from memoryos_pipeline.readmodels.invariants import find_violations  # noqa: PLC0415
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415

    found = []
    for tenant in list_tenants(owner, ledger):
        with owner.transaction(tenant.tenant_id) as connection:
            for violation in find_violations(connection, tenant.tenant_id, at_rest=at_rest):
                told = {"invariant": violation.invariant, "subject": violation.subject, "sentence": violation.sentence}
                found.append({"tenant": tenant.name, **told})
    return found


def _show(console: Console, report: dict[str, Any]) -> None:
    checks = Table("", "checked", "what it says")
    for check in report["checks"]:
        checks.add_row(
            "[green]ok[/]" if check["is_good"] else "[red]wrong[/]", check["name"], escape(check["sentence"])
        )
    console.print(checks)
    if run := report["last_scheduled_run"]:
        found = sum(run["violations"].values())
        console.print(f"The last scheduled check ended at {run['finished_at'][:19]} UTC and found {found} violations.")
    _show_mended(console, report)
    if not report["violations"]:
        console.print("No invariant is broken.")
        return
    left = (
        "what cannot be mended here, and what repairs it"
        if "mended" in report
        else "what is wrong, and what repairs it"
    )
    table = Table("invariant", "tenant", left)
    for violation in report["violations"]:
        table.add_row(violation["invariant"], escape(violation["tenant"]), escape(violation["sentence"]))
    console.print(table)


def _show_mended(console: Console, report: dict[str, Any]) -> None:
    if not report.get("mended"):
        if "mended" in report:
            console.print("Nothing was mended.")
        return
    table = Table("mended", "tenant", "what was done")
    for each in report["mended"]:
        table.add_row(escape(each["what"]), escape(each["tenant"]), escape(each["sentence"]))
    console.print(table)
