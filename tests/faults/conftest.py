"""What fault tests share: a broker of one test's own, and clusters of real processes, one a module.

`cluster` is a `memoryos_pipeline.faults.cluster.Cluster` (its docstring shows how it is used) on a database and a
Valkey of the module's own, with no member yet and the extractive model; `journal` belongs to it.
A module that wants other settings makes its own from `ground`: `Cluster(ground, language_model="anthropic", ...)`.
A test sends through `HttpWriter(cluster, journal)` or `QueueWriter(cluster, journal, path)`, waits with
`cluster.drain(seconds)` or `cluster.wait_until(...)` (both start the dead again) and then looks at
`check(cluster, journal.path).wrongs()`, which is empty when nothing was lost, doubled or left broken.
Every random choice comes from `seed`; MEMORYOS_TEST_SEED repeats a run.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.faults.cluster import Cluster, Ground
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.acceptance.conftest import own_valkey
from tests.conftest import TEMPLATE
from tests.faults.crew import fresh_seed

__all__ = ["own_valkey"]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here: `make test` runs of it what is marked `smoke` as well."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.faults)


@pytest.fixture(scope="module")
def ground(postgres: EmbeddedPostgres) -> Iterator[Ground]:
    """A migrated database with a tenant and a key, a Valkey, and a directory for logs, journals and failpoints."""
    name, directory = f"faults_{secrets.token_hex(6)}", _open_directory()
    postgres.create_database(name, template=TEMPLATE)
    owner, tenant_id = Database(postgres.url("owner", name), pool_size=1), mint_id()
    create_tenant(owner, tenant_id, "faults")
    key = mint_key(owner, tenant_id)
    owner.dispose()
    broker = EmbeddedValkey(directory / "valkey")
    broker.start()
    try:
        yield Ground(postgres, broker, name, tenant_id, key, directory)
    finally:
        broker.stop()
        postgres.drop_database(name)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(ground: Ground) -> Iterator[Cluster]:
    """A cluster without members; whoever it started is killed at the end."""
    with Cluster(ground) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def journal(ground: Ground) -> Iterator[ClientJournal]:
    """The journal of everything the module sends."""
    journal = ClientJournal(ground.directory / "journal.jsonl")
    yield journal
    journal.close()


@pytest.fixture
def seed() -> int:
    """The seed of one run."""
    return fresh_seed()


def _open_directory() -> Path:
    # As root the servers run under another account, which passes through.
    root = Path(tempfile.mkdtemp(prefix="mem-test-faults-"))
    root.chmod(0o755)
    return root
