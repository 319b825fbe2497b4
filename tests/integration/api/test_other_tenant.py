"""Every place of the API, asked by a stranger who knows all ids and names: it tells them nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.tenants import create_tenant
from tests.builders_recall import TalkingModel, recall_parts
from tests.conftest import Stack
from tests.integration.api.test_recall import client_of
from tests.integration.readmodels.past import Past, live_a_past

CANARY = "kanariya"
OPEN = {"/livez", "/readyz"}
"""What answers without a key."""


@pytest.fixture
def theirs(stack: Stack) -> Past:
    """A past of another tenant."""
    tenant_id = mint_id()
    create_tenant(stack.owner, tenant_id, "other")
    return live_a_past(stack.app, tenant_id, user_id="maya", canary=CANARY)


@pytest.fixture
def stranger(stack: Stack) -> Iterator[tuple[TestClient, TalkingModel]]:
    """A client of a tenant that knows nothing yet, and the model that answers it."""
    model = TalkingModel(reply="I do not know.")
    with client_of(stack, recall_parts(stack, language_model=model), "read", "ingest", "erase") as client:
        yield client, model


def _places(client: TestClient) -> list[tuple[str, str]]:
    """Return every method and path there is."""
    paths = client.get("/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() if path not in OPEN for method in methods]


def _ids(stack: Stack, past: Past) -> dict[str, list[object]]:
    """Return what stands for each name in a path."""
    with stack.app.transaction(past.tenant_id) as connection:
        turn, verdict = (
            connection.exec_driver_sql(f"select {name}_id from memoryos.{name} limit 1").scalar_one()
            for name in ("turn", "verdict")
        )
    return {
        "turn_id": [turn], "knowledge_id": [past.new, past.old], "verdict_id": [verdict], "user_id": ["maya"],
        "external_id": ["c1"], "name": ["default"],
    }  # fmt: skip


def _filled(path: str, given: dict[str, list[object]]) -> list[str]:
    """Return a path with every id of the past in its place."""
    if "{" not in path:
        return [path]
    head, _, rest = path.partition("{")
    name, _, tail = rest.partition("}")
    return [f"{head}{one}{tail}" for one in given[name]]


class TestStranger:
    def test_no_answer_holds_a_word_of_it(
        self, stack: Stack, theirs: Past, stranger: tuple[TestClient, TalkingModel]
    ) -> None:
        """Whatever is asked by whatever method: no marker in an answer or a prompt, nothing found by id."""
        client, model = stranger
        before = _everything(stack, theirs)
        body: dict[str, Any] = {"user_id": "maya", "agent_id": "companion", "query": f"{CANARY} canary"}
        seen, given = [], _ids(stack, theirs)
        for method, path in _places(client):
            for filled in _filled(path, given):
                answer = client.request(
                    method,
                    filled,
                    params={"user_id": "maya"},
                    json={"POST": body, "PATCH": {"content": "mine"}}.get(method),
                )
                seen.append((method, path, answer.status_code))
                asked_back = answer.text.replace(body["query"], "")
                assert CANARY not in asked_back + str(answer.headers), (method, filled)
                assert answer.status_code < 500, (method, filled, answer.text)
                if any(name in path for name in ("{turn_id}", "{knowledge_id}", "{verdict_id}")):
                    assert answer.status_code == 404, (method, filled)

        assert len(seen) > 25
        assert all(CANARY not in context for _, context in model.shown)
        assert _everything(stack, theirs) == before


def _everything(stack: Stack, past: Past) -> list[tuple[Any, ...]]:
    """Return how much there is of a past."""
    with stack.app.transaction(past.tenant_id) as connection:
        return [
            tuple(connection.exec_driver_sql(f"select count(*), '{name}' from memoryos.{name}").one())
            for name in ("turn", "page", "knowledge", "embedding", "posting", "work", "access_event", "event")
        ]
