"""Hot turns over HTTP, with and without their copy."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.pipeline import build_hot_copies
from memoryos_pipeline.settings import Settings
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import mint_key
from tests.builders_recall import recall_parts
from tests.conftest import Stack

TURN = {"user_id": "maya", "agent_id": "a", "conversation_id": "room/7", "role": "user",
        "occurred_at": "2026-03-01T09:00:00+09:00"}  # fmt: skip
SCOPES = ("ingest", "read", "erase", "metrics")
ADDRESS = "/v1/conversations/room/7/hot"


@pytest.fixture
def client(stack: Stack, valkey: EmbeddedValkey) -> Iterator[TestClient]:
    """The API as a setting switches the copies on."""
    settings = Settings(broker_url=valkey.url, hot_copy_seconds=60.0, broker_key_prefix=f"{stack.name}:")
    copies = build_hot_copies(settings)
    assert copies is not None
    built = recall_parts(stack)
    parts = Parts(built.database, built.embedder, built.language_model, hot_copies=copies)
    headers = {"authorization": f"Bearer {mint_key(stack.owner, stack.tenant_id, scopes=SCOPES)}"}
    with TestClient(create_app(parts, ledger=stack.ledger_database), headers=headers) as api:
        yield api
    copies.close()


def _read(client: TestClient, **asked: str) -> Any:
    return client.get(ADDRESS, params={"user_id": "maya", "agent_id": "a", **asked}).json()


class TestGetHot:
    def test_turns_are_there_as_soon_as_they_are_recorded(self, client: TestClient) -> None:
        """Oldest first, in the offset they were said in; used copies are counted; an erased user has none."""
        said = [{**TURN, "client_turn_id": str(n), "content": f"안녕 {n}"} for n in range(3)]
        assert client.post("/v1/turns", json={"turns": said}).status_code == 202
        turns = _read(client)["turns"]
        assert [(turn["seq"], turn["content"]) for turn in turns] == [(1, "안녕 0"), (2, "안녕 1"), (3, "안녕 2")]
        assert turns[0]["occurred_at"] == TURN["occurred_at"]
        asked = {"user_id": "maya", "agent_id": "a", "query": "안녕", "conversation_id": "room/7"}
        assert client.post("/v1/context", json=asked).json()["sections"]["recent"] == 3
        assert 'memoryos_hot_copy_total{outcome="used"} 2' in client.get("/metrics").text
        assert client.delete("/v1/users/maya").status_code == 200

        assert _read(client)["turns"] == []

    def test_an_unknown_conversation_has_no_turns(self, client: TestClient) -> None:
        """It is empty, not an error: its first turn may be on its way."""
        assert _read(client, user_id="nobody")["turns"] == []


def test_without_the_setting_nothing_is_copied() -> None:
    """The default keeps no copies."""
    assert build_hot_copies(Settings()) is None
