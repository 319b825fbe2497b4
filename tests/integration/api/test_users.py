"""Erasing a user over HTTP: a receipt when nothing is left, and 410 for ever after."""

from urllib.parse import quote

import pytest

from memoryos_pipeline.store.tenants import mint_key
from tests.integration.api.conftest import Api
from tests.integration.readmodels.past import live_a_past


class TestDeleteUser:
    @pytest.mark.parametrize("user_id", ["maya", "마야", "a/b c?d"])
    def test_answers_with_a_receipt(self, api: Api, user_id: str) -> None:
        """Any name a user can have can be erased; nothing of them is listed afterwards."""
        live_a_past(api.stack.app, api.stack.tenant_id, user_id=user_id)
        response = api.client.delete(f"/v1/users/{quote(user_id, safe='')}")

        assert response.status_code == 200
        assert response.json()["rows_removed"] > 40
        assert response.json()["receipt_id"]
        assert api.client.get("/v1/turns", params={"user_id": user_id}).json()["turns"] == []

    def test_recording_answers_410_from_then_on(self, api: Api) -> None:
        """An erased user stays erased."""
        turn = {
            "user_id": "maya", "agent_id": "companion", "conversation_id": "c1", "client_turn_id": "t1", "role": "user",
            "content": "hello", "occurred_at": "2026-05-04T18:02:00+09:00",
        }  # fmt: skip
        assert api.client.post("/v1/turns", json=turn).status_code == 202
        assert api.client.delete("/v1/users/maya").status_code == 200
        assert api.client.post("/v1/turns", json={**turn, "client_turn_id": "t2"}).status_code == 410

    def test_an_unknown_user_is_not_found(self, api: Api) -> None:
        """A slip of the pen erases nobody and blocks nobody."""
        assert api.client.delete("/v1/users/nobody").status_code == 404

    def test_a_key_that_may_only_read_may_not_erase(self, api: Api) -> None:
        """Erasing needs the scope `erase`."""
        key = mint_key(api.stack.owner, api.stack.tenant_id, scopes=("read", "ingest"))
        live_a_past(api.stack.app, api.stack.tenant_id)

        assert api.client.delete("/v1/users/maya", headers={"authorization": f"Bearer {key}"}).status_code == 403
        assert len(api.client.get("/v1/turns").json()["turns"]) == 7
