"""Tenants and their API keys. Keys are stored as SHA-256; a key is shown once, when it is minted."""

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.errors import UnknownKeyError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.database import Database

KEY_PREFIX = "mem_"
ALL_SCOPES = ("ingest", "read", "erase", "admin")

INSERT_TENANT = text("insert into memoryos.tenant (tenant_id, name) values (:tenant_id, :name) on conflict do nothing")
INSERT_KEY = text("""
    insert into memoryos.api_key (tenant_id, key_id, prefix, key_sha256, label, scopes)
    values (:tenant_id, :key_id, :prefix, :key_sha256, :label, :scopes)
""")
FIND_KEY = text("""
    select tenant_id, key_id, scopes from memoryos.api_key
     where key_sha256 = :key_sha256 and revoked_at is null and (expires_at is null or expires_at > clock_timestamp())
""")
SHOW_HASH = text("select set_config('app.key_sha256', :key_hex, true)")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a key belongs to and what it may do. The tenant comes from here and nowhere else."""

    tenant_id: UUID
    key_id: UUID
    scopes: frozenset[str]


def create_tenant(owner: Database, tenant_id: UUID, name: str) -> None:
    """Create a tenant; one that exists is left as it is."""
    with owner.transaction(tenant_id) as connection:
        connection.execute(INSERT_TENANT, {"tenant_id": tenant_id, "name": name})


def mint_key(owner: Database, tenant_id: UUID, *, label: str = "", scopes: tuple[str, ...] = ALL_SCOPES) -> str:
    """Mint an API key for a tenant and return it; only its hash is kept."""
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    values = {
        "tenant_id": tenant_id,
        "key_id": mint_id(),
        "prefix": key[: len(KEY_PREFIX) + 6],
        "key_sha256": key_digest(key),
        "label": label,
        "scopes": list(scopes),
    }
    with owner.transaction(tenant_id) as connection:
        connection.execute(INSERT_KEY, values)
    return key


def authenticate(app: Database, key: str) -> Caller:
    """Return who `key` belongs to. Raises UnknownKeyError."""
    digest = key_digest(key)
    with app.across_tenants() as connection:
        connection.execute(SHOW_HASH, {"key_hex": digest.hex()})
        row = connection.execute(FIND_KEY, {"key_sha256": digest}).first()
    if row is None:
        raise UnknownKeyError
    return Caller(row.tenant_id, row.key_id, frozenset(row.scopes))


def key_digest(key: str) -> bytes:
    """Return the SHA-256 under which a key is stored; a key has 256 random bits, so no salt is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
