"""The API over a real database, spoken to in process."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import mint_key
from tests.conftest import Stack


@dataclass(frozen=True)
class Api:
    """A client that carries a key of the stack's tenant, and the stack below it."""

    client: TestClient
    stack: Stack
    parts: Parts


@pytest.fixture
def api(stack: Stack) -> Iterator[Api]:
    """The application on a fresh database; models are absent because ingest calls none."""
    parts = Parts(database=stack.app, embedder=None, language_model=None)  # type: ignore[arg-type]
    headers = {"authorization": f"Bearer {mint_key(stack.owner, stack.tenant_id)}"}
    with TestClient(create_app(parts), headers=headers, raise_server_exceptions=False) as client:
        yield Api(client, stack, parts)
