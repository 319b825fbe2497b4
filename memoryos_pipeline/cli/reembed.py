"""`memoryos reembed`: after a change of the embedder, give everything that can be recalled a vector of the new one."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import Settings, load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.reach import Reach


def reembed(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line: `model`, `owed`, rows by tenant.")] = False,
) -> None:
    """Owe new vectors where the settings name another embedder than before. Search goes on; repeating is safe."""
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415 - other commands start without

    settings = load_settings()
    try:
        model, owed = _owe(find_connection(settings, needs_key=False), settings)
    except NotConnectedError as error:
        end_with(Console(stderr=True), str(error))
    except OperationalError:
        end_with(Console(stderr=True), "the database does not answer; is `memoryos up` running?")
    if as_json:
        typer.echo(json.dumps({"model": model, "owed": sum(owed.values()), "tenants": owed}, ensure_ascii=False))
    else:
        _show(Console(), model, owed)


def _owe(reach: "Reach", settings: Settings) -> tuple[str, dict[str, int]]:
    from memoryos_pipeline.models.factory import build_embedder  # noqa: PLC0415
    from memoryos_pipeline.store.database import Database  # noqa: PLC0415
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415
    from memoryos_pipeline.store.reembedding import owe_reembedding  # noqa: PLC0415

    embedder = build_embedder(settings)
    owner = Database(reach.owner_url, pool_size=1, application_name="memoryos-reembed")
    ledger = Database(reach.ledger_url, pool_size=1, application_name="memoryos-reembed")
    try:
        owed = {
            tenant.name: owe_reembedding(owner, tenant.tenant_id, embedder, max_attempts=settings.max_attempts)
            for tenant in list_tenants(owner, ledger)
        }
    finally:
        owner.dispose()
        ledger.dispose()
    return embedder.model, owed


def _show(console: Console, model: str, owed: dict[str, int]) -> None:
    if not any(owed.values()):
        console.print(f"Everything that can be recalled has a vector of {escape(model)}, or is waiting for one.")
        return
    table = Table("tenant", "rows owed")
    for tenant, count in owed.items():
        table.add_row(escape(tenant), str(count))
    console.print(table)
    console.print(f"Workers give them vectors of {escape(model)}; `memoryos status` shows how far they are.")
