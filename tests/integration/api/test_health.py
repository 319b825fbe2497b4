"""Whether the process lives and whether turns can be recorded are two questions."""

import io

import structlog
from starlette.testclient import TestClient

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.observability import configure_logging
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from tests.conftest import Stack
from tests.integration.api.conftest import Api


def _app(database: Database) -> TestClient:
    parts = Parts(database=database, embedder=None, language_model=None)  # type: ignore[arg-type]
    return TestClient(create_app(parts), raise_server_exceptions=False)


class TestReady:
    def test_a_migrated_database_is_ready(self, api: Api) -> None:
        """Both answers are 200 without a key and without a broker."""
        client = TestClient(api.client.app)
        assert client.get("/livez").status_code == 200
        assert (client.get("/readyz").status_code, client.get("/readyz").json()) == (200, {"status": "ready"})

    def test_an_absent_database_is_a_503_with_a_reason(self) -> None:
        """The process lives, but turns cannot be recorded; posting says the same."""
        database = Database("postgresql://memoryos_app:x@127.0.0.1:1/none", pool_size=1)
        with _app(database) as client:
            assert client.get("/livez").status_code == 200
            assert client.get("/readyz").status_code == 503
            assert client.get("/readyz").json()["reason"] == "the database does not answer"
            answer = client.post("/v1/turns", json={}, headers={"x-api-key": "mem_unknown"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")

    def test_a_schema_without_migrations_is_a_503(self, stack: Stack) -> None:
        """A database nobody migrated takes no turns."""
        name = f"{stack.name}_empty"
        stack.server.create_database(name)
        database = Database(stack.server.url("app", name), pool_size=1)
        with _app(database) as client:
            answer = client.get("/readyz")
        database.dispose()
        stack.server.drop_database(name)

        assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
        assert "migrate" in answer.json()["reason"]


class TestErrors:
    def test_unknown_places_have_the_one_error_shape(self, api: Api) -> None:
        """A wrong path or method is answered like every other error."""
        assert api.client.get("/nowhere").json()["error"]["code"] == "http"
        answer = api.client.put("/v1/turns")
        assert (answer.status_code, answer.json()["error"]["field"]) == (405, None)


class TestLog:
    def test_requests_are_logged_without_secrets_or_text(self, api: Api) -> None:
        """Route, status and id of a request are told; its key, text, ids, path and query are not."""
        output = io.StringIO()
        configure_logging("debug", stream=output)
        canary = "c4n4ry"
        body = {
            "user_id": canary, "conversation_id": canary, "client_turn_id": canary, "role": "user",
            "content": f"text {canary}", "occurred_at": "2026-05-04T18:02:00Z", "metadata": {canary: canary},
        }  # fmt: skip
        try:
            recorded = api.client.post(f"/v1/turns?q={canary}", json=body, headers={"x-canary": canary})
            api.client.post("/v1/turns", json={**body, "content": "other"})
            api.client.post("/v1/turns", json={**body, canary: f"\0{canary}"})
            api.client.post(f"/{canary}", headers={"authorization": f"Bearer mem_{canary}"})
        finally:
            structlog.reset_defaults()
        written = output.getvalue()

        assert canary not in written
        assert recorded.headers["x-request-id"] in written
        assert '"route": "/v1/turns"' in written
        assert '"route": "unmatched"' in written
