"""Servers of a run's own: a Postgres that syncs its disk, a Valkey, a migrated database; all gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryos_pipeline.embedded.first_run import TENANT_ID, TENANT_NAME, ensure_schema
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.faults.cluster import Ground
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import create_tenant, mint_key

DATABASE = "memoryos"


@contextmanager
def temporary_ground() -> Iterator[Ground]:
    """Start both servers in a temporary directory; stop them and remove it at the end."""
    root = Path(tempfile.mkdtemp(prefix="mem-faults-"))
    root.chmod(0o711)  # as root the servers run under another account, which passes through
    postgres, valkey = EmbeddedPostgres(root / "postgres"), EmbeddedValkey(root / "valkey")
    try:
        postgres.start()
        valkey.start()
        yield Ground(postgres, valkey, DATABASE, TENANT_ID, _prepare(postgres), root)
    finally:
        valkey.stop()
        postgres.stop()
        shutil.rmtree(root, ignore_errors=True)


def _prepare(postgres: EmbeddedPostgres) -> str:
    postgres.create_database(DATABASE)
    ensure_schema(postgres.url("owner", DATABASE))
    owner = Database(postgres.url("owner", DATABASE), pool_size=1)
    create_tenant(owner, TENANT_ID, TENANT_NAME)
    key = mint_key(owner, TENANT_ID, label="faults")
    owner.dispose()
    return key
