"""What a data directory needs once: the schema, a tenant, an API key. Safe to repeat at every start."""

from memoryos_pipeline.domain.errors import UnknownKeyError
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.embedded.directory import DataDirectory, write_secret
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.migrate import migrate
from memoryos_pipeline.store.tenants import authenticate, create_tenant, mint_key

TENANT_NAME = "default"
TENANT_ID = derive_id("tenant", TENANT_NAME)


def ensure_schema(owner_url: str) -> None:
    """Bring the database to the newest schema."""
    owner = Database(owner_url, pool_size=1, application_name="memoryos-owner")
    migrate(owner)
    owner.dispose()


def ensure_key(owner_url: str, database_url: str, *, directory: DataDirectory) -> str:
    """Return an API key of the tenant `default`: the one in the data directory if this database knows it."""
    kept = directory.key_file.read_text(encoding="utf-8").strip() if directory.key_file.exists() else ""
    if kept and _is_known(database_url, kept):
        return kept
    owner = Database(owner_url, pool_size=1, application_name="memoryos-owner")
    create_tenant(owner, TENANT_ID, TENANT_NAME)
    key = mint_key(owner, TENANT_ID, label="memoryos up")
    owner.dispose()
    write_secret(directory.key_file, key)
    return key


def _is_known(database_url: str, key: str) -> bool:
    app = Database(database_url, pool_size=1)
    try:
        authenticate(app, key)
    except UnknownKeyError:
        return False
    finally:
        app.dispose()
    return True
