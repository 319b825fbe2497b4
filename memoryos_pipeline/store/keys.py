"""What the owner does with tenants and keys that exist: find, list, revoke. Minting is in tenants.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.store.database import Database

TENANT_IDS = text("select tenant_id from memoryos.tenant order by tenant_id")
TENANT_NAME = text("select name from memoryos.tenant where tenant_id = :tenant_id")
KEYS = text("""
    select key_id, prefix, label, scopes, created_at, revoked_at from memoryos.api_key
     where tenant_id = :tenant_id order by created_at, key_id
""")
REVOKE = text("""
    update memoryos.api_key set revoked_at = coalesce(revoked_at, clock_timestamp())
     where tenant_id = :tenant_id and (cast(key_id as text) = :named or prefix = :named) returning key_id
""")

SET_BUDGET = text("update memoryos.tenant set tokens_per_day = :tokens_per_day where tenant_id = :tenant_id")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant by id and name."""

    tenant_id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it may be shown: never the key itself."""

    key_id: UUID
    prefix: str
    label: str
    scopes: Sequence[str]
    created_at: datetime
    revoked_at: datetime | None


def list_tenants(owner: Database, ledger: Database) -> list[Tenant]:
    """Return every tenant. The ledger role sees that they exist, the owner what they are called."""
    with ledger.across_tenants() as connection:
        found = list(connection.execute(TENANT_IDS).scalars())
    return [Tenant(tenant_id, _name(owner, tenant_id)) for tenant_id in found]


def list_keys(owner: Database, tenant_id: UUID) -> list[ApiKey]:
    """Return the keys of a tenant, oldest first, revoked ones too."""
    with owner.transaction(tenant_id) as connection:
        return [ApiKey(*row) for row in connection.execute(KEYS, {"tenant_id": tenant_id})]


def revoke_key(owner: Database, tenant_id: UUID, named: str) -> UUID:
    """Revoke a key by its id or prefix; it stops working within ten seconds. Raises NotFoundError."""
    with owner.transaction(tenant_id) as connection:
        key_id: UUID | None = connection.execute(REVOKE, {"tenant_id": tenant_id, "named": named}).scalar()
    if key_id is None:
        raise NotFoundError(f"this tenant has no key {named!r}")
    return key_id


def set_budget(owner: Database, tenant_id: UUID, *, tokens_per_day: int | None) -> None:
    """Bound a tenant's tokens of language models a day (UTC); None takes the bound away."""
    with owner.transaction(tenant_id) as connection:
        connection.execute(SET_BUDGET, {"tenant_id": tenant_id, "tokens_per_day": tokens_per_day})


def _name(owner: Database, tenant_id: UUID) -> str:
    with owner.transaction(tenant_id) as connection:
        name: str = connection.execute(TENANT_NAME, {"tenant_id": tenant_id}).scalar_one()
        return name
