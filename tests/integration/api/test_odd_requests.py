"""Requests nobody should send: each is refused by a sentence that names what is wrong, none is a fault of ours."""

from typing import Any

import pytest

from tests.integration.api.conftest import Api

WITH_A_MODEL = (("post", "/v1/search"), ("post", "/v1/context"), ("post", "/v1/answer"), ("put", "/v1/policy"))
"""Routes whose body a model of the framework checks."""
NOT_JSON = (
    b"{", b"\xff", b"[" * 100_000, b'{"a":' * 50_000, b'{"a":' + b"9" * 6_000 + b"}", b'{"a":NaN}',
    b'{"user_id":"a","user_id":"b"}',
)  # fmt: skip
TURN = {
    "user_id": "maya", "conversation_id": "c", "client_turn_id": "1", "role": "user", "content": "I moved to Lisbon.",
    "occurred_at": "2026-05-04T18:02:00Z",
}  # fmt: skip


def send(api: Api, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Send raw JSON; return the status and the error."""
    headers = {"content-type": "application/json"}
    answer = api.client.request(method, path, content=body, headers=headers)
    return answer.status_code, answer.json()["error"]


class TestBodies:
    def test_one_reader_for_every_route(self, api: Api) -> None:
        """What `POST /v1/turns` does not take for JSON no other route does: 400 that says why, not the last of two."""
        for method, path in WITH_A_MODEL:
            for body in NOT_JSON:
                status, error = send(api, method, path, body)
                assert (status, error["code"]) == (400, "invalid_json"), (path, body[:40])

    @pytest.mark.parametrize("key", [b"\\ud800", b"x" * 100_000], ids=["surrogate", "long"])
    def test_a_name_that_cannot_be_repeated(self, api: Api, key: bytes) -> None:
        """A field that no text can hold, or of a hundred kilobytes: still 422, in an answer of a few lines."""
        for method, path in WITH_A_MODEL:
            body = b'{"user_id":"a","query":"b","' + key + b'":1}'
            headers = {"content-type": "application/json"}
            answer = api.client.request(method, path, content=body, headers=headers)
            assert (answer.status_code, len(answer.content) < 2_000) == (422, True), path
        status, error = send(api, "put", "/v1/policy", b'{"settings":{"' + key + b'":1}}')
        assert (status, error["code"]) == (422, "invalid_policy")


class TestPolicies:
    @pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "1e-320", '"inf"', '"nan"'])
    def test_a_number_without_end(self, api: Api, number: str) -> None:
        """Infinite, of hundreds of digits, next to nothing: every setting that is a number refuses it by name."""
        settings = api.client.get("/v1/policy").json()["settings"]
        for name in (name for name, value in settings.items() if isinstance(value, int | float)):
            status, error = send(api, "put", "/v1/policy", f'{{"settings":{{"{name}":{number}}}}}'.encode())
            assert (status, error["field"]) == (422, name)

    def test_an_erased_user_gets_none(self, api: Api) -> None:
        """A policy would bring the name back: 410, as for a turn, and nothing is written."""
        assert api.client.post("/v1/turns", json=TURN).status_code == 202
        assert api.client.delete("/v1/users/maya").status_code == 200
        answer = api.client.put("/v1/policy", json={"user_id": "maya", "settings": {"strength_days": 9}})

        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "erased")
        assert api.client.get("/v1/policy/versions", params={"user_id": "maya"}).json() == {"versions": []}
