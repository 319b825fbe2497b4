"""The real parts every test runs on: one embedded Postgres and Valkey a test process, a fresh database a test."""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import Ledger
from memoryos_pipeline.store.migrate import migrate
from memoryos_pipeline.store.tenants import create_tenant

TEMPLATE = "memoryos_template"
SETTINGS = {"fsync": "off", "autovacuum_naptime": "1min"}
"""Hundreds of databases come and go here; to visit each every other second would keep a core busy."""

# How quick a machine is is no property of the code. The examples are the same in every run; HYPOTHESIS_PROFILE=explore
# looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A real cluster with a migrated template database."""
    server = EmbeddedPostgres(_server_root(tmp_path_factory, "pg"), settings=SETTINGS)
    server.start()
    try:
        server.create_database(TEMPLATE)
        owner = Database(server.url("owner", TEMPLATE), pool_size=1)
        migrate(owner)
        owner.dispose()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedValkey]:
    """A real Valkey."""
    server = EmbeddedValkey(_server_root(tmp_path_factory, "valkey"))
    server.start()
    yield server
    server.stop()


def _server_root(factory: pytest.TempPathFactory, name: str) -> Path:
    # pytest's own folders are private to us; the servers run as another account when we are root.
    import tempfile

    root = Path(tempfile.mkdtemp(prefix=f"mem-test-{name}-"))
    root.chmod(0o755)
    factory.getbasetemp().joinpath(f"{name}.path").write_text(str(root))
    return root / "server"


@dataclass(frozen=True)
class Stack:
    """One fresh, migrated database: a pool a role, a ledger, a tenant."""

    name: str
    server: EmbeddedPostgres
    app: Database
    ledger_database: Database
    owner: Database
    ledger: Ledger
    tenant_id: UUID

    def url(self, role: str) -> str:
        return self.server.url(role, self.name)


@pytest.fixture
def stack(postgres: EmbeddedPostgres) -> Iterator[Stack]:
    """A database of its own for one test, cloned from the migrated template."""
    name = f"test_{secrets.token_hex(6)}"
    postgres.create_database(name, template=TEMPLATE)
    app, ledger_database, owner = (
        Database(postgres.url(role, name), pool_size=4) for role in ("app", "ledger", "owner")
    )
    tenant_id = mint_id()
    create_tenant(owner, tenant_id, "test")
    yield Stack(name, postgres, app, ledger_database, owner, Ledger(ledger_database), tenant_id)
    for database in (app, ledger_database, owner):
        database.dispose()
    postgres.drop_database(name)
