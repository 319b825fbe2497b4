"""`memoryos key`: API keys of a tenant. A key is shown once, when it is minted; only its hash is kept."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.operating import both_roles
from memoryos_pipeline.cli.output import end_with

if TYPE_CHECKING:
    from memoryos_pipeline.store.database import Database
    from memoryos_pipeline.store.keys import Tenant

app = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)
TenantOption = Annotated[str | None, typer.Option("--tenant", help="Name or id; not needed while there is only one.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line.")]
SCOPES = "ingest,read,erase,admin"
KNOWN_SCOPES = f"{SCOPES},metrics"
"""`metrics` is asked for by name: its figures are those of the whole system, not of one tenant."""


@app.command()
def create(
    tenant: TenantOption = None,
    label: Annotated[str, typer.Option(help="What the key is for.")] = "",
    scopes: Annotated[str, typer.Option(help="What it may do, by comma.")] = SCOPES,
    new_tenant: Annotated[bool, typer.Option("--new-tenant", help="Create the tenant when there is none yet.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mint a key and print it; it cannot be shown again."""
    from memoryos_pipeline.store.tenants import mint_key  # noqa: PLC0415 - other commands start without

    chosen = tuple(scope.strip() for scope in scopes.split(","))
    unknown = sorted(set(chosen) - set(KNOWN_SCOPES.split(",")))
    if unknown:
        end_with(Console(stderr=True), f"a key has no scope {unknown[0]!r}; there are {KNOWN_SCOPES}")
    with both_roles() as (owner, ledger):
        found = _choose(owner, ledger, tenant, create=new_tenant)
        key = mint_key(owner, found.tenant_id, label=label, scopes=chosen)
    typer.echo(json.dumps({"tenant": found.name, "key": key, "scopes": chosen}) if as_json else key)


@app.command(name="list")
def list_(tenant: TenantOption = None, as_json: AsJson = False) -> None:
    """List the keys of a tenant by their beginnings."""
    from memoryos_pipeline.store.keys import list_keys  # noqa: PLC0415

    with both_roles() as (owner, ledger):
        keys = list_keys(owner, _choose(owner, ledger, tenant).tenant_id)
    rows: list[dict[str, Any]] = [
        {
            "key_id": str(key.key_id),
            "prefix": key.prefix,
            "label": key.label,
            "scopes": list(key.scopes),
            "created_at": key.created_at.isoformat(),
            "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
        }
        for key in keys
    ]
    if as_json:
        typer.echo(json.dumps({"keys": rows}, ensure_ascii=False))
        return
    table = Table("begins with", "label", "may", "created", "revoked")
    for row in rows:
        may, revoked = ", ".join(row["scopes"]), (row["revoked_at"] or "")[:16]
        table.add_row(row["prefix"], escape(row["label"]), may, row["created_at"][:16], revoked)
    Console().print(table)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Id of the key, or what it begins with.")],
    tenant: TenantOption = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key; it stops working within ten seconds."""
    from memoryos_pipeline.domain.errors import NotFoundError  # noqa: PLC0415
    from memoryos_pipeline.store.keys import revoke_key  # noqa: PLC0415

    with both_roles() as (owner, ledger):
        try:
            key_id = revoke_key(owner, _choose(owner, ledger, tenant).tenant_id, key)
        except NotFoundError as error:
            end_with(Console(stderr=True), str(error))
    typer.echo(json.dumps({"revoked": str(key_id)}) if as_json else f"revoked {key_id}")


def _choose(owner: "Database", ledger: "Database", named: str | None, *, create: bool = False) -> "Tenant":
    from memoryos_pipeline.domain.ids import mint_id  # noqa: PLC0415
    from memoryos_pipeline.store.keys import Tenant, list_tenants  # noqa: PLC0415
    from memoryos_pipeline.store.tenants import create_tenant  # noqa: PLC0415

    tenants = list_tenants(owner, ledger)
    matching = [tenant for tenant in tenants if named in (None, tenant.name, str(tenant.tenant_id))]
    if len(matching) != 1 and not (named and create):
        names = ", ".join(tenant.name for tenant in tenants) or "none yet"
        end_with(Console(stderr=True), f"name one tenant with --tenant; there are: {names}")
    if matching:
        return matching[0]
    tenant = Tenant(mint_id(), str(named))
    create_tenant(owner, tenant.tenant_id, tenant.name)
    return tenant
