"""Whatever a user is called, their memory is theirs: written, read, asked and erased under that name alone."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from httpx import Client

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.builders_recall import recall_parts
from tests.conftest import Stack
from tests.integration.api.test_recall import client_of
from tests.processes import served_api

NAMES = (
    "1f0c7c1e-8a51-4b57-9a0d-2a1f9c3e5b77", "a/b", "a:b", "...", "*", "[x]", "main", "a name", "１２３", "🏯",
    "Maya", "maya", "%2F", "a%b_c", "d'Arcy", "a?b#c", "マヤ", "null", "0", "\\", "a+b", "n" * 256,
)  # fmt: skip
REFUSED = ("n" * 300, "a\nb", " ", "a\0b", ".", "..")


def _turn(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "user_id": name, "conversation_id": name, "client_turn_id": name, "role": "user",
        "content": f"my word is w{NAMES.index(name)}w", "occurred_at": "2026-05-04T18:02:00Z", **changes,
    }  # fmt: skip


@pytest.fixture
def client(stack: Stack) -> Iterator[Client]:
    """A client that may do everything with one tenant, over real HTTP: addresses are what is at stake."""
    headers = {"authorization": f"Bearer {mint_key(stack.owner, stack.tenant_id)}"}
    with served_api(recall_parts(stack)) as url, Client(base_url=url, headers=headers) as client:
        yield client


def _listed(client: Client, name: str) -> list[str]:
    return [turn["content"] for turn in client.get("/v1/turns", params={"user_id": name}).json()["turns"]]


def _found(client: Client, name: str) -> list[str]:
    body = {"user_id": name, "query": "what is my word", "limit": 50}
    return [result["content"] for result in client.post("/v1/search", json=body).json()["results"]]


class TestNames:
    def test_each_is_a_memory_of_its_own(self, client: Client) -> None:
        """Slashes, wildcards, dots, twins in case or width, any script: nobody finds another's; one erasure is one."""
        for name in NAMES:
            assert client.post("/v1/turns", json=_turn(name)).status_code == 202, name
        for name in NAMES:
            said = [_turn(name)["content"]]
            assert (_listed(client, name), _found(client, name)) == (said, said), name
            marks = client.get(f"/v1/conversations/{quote(name, safe='')}/watermarks", params={"user_id": name})
            assert marks.status_code == 200, name
        for gone, name in enumerate(NAMES, start=1):
            assert client.delete(f"/v1/users/{quote(name, safe='')}").status_code == 200, name
            left = {turn["user_id"] for turn in client.get("/v1/turns").json()["turns"]}
            assert left == set(NAMES[gone:]), name

    def test_what_is_no_name_is_refused_by_one_rule(self, client: Client) -> None:
        """Too long, with a line break or NUL, blank, or a step in a path: 422 that names the field."""
        for name in REFUSED:
            asked = {"user_id": name, "query": "x"}
            for path, body in (("/v1/turns", {**_turn("main"), "user_id": name}), ("/v1/search", asked)):
                assert client.post(path, json=body).json()["error"]["field"] == "user_id", name
            assert client.get("/v1/turns", params={"user_id": name}).status_code == 422, name

    def test_names_do_not_run_together(self, stack: Stack, client: Client) -> None:
        """User `b:c` of one tenant and `c` of another, and metadata that claims to be somebody: nothing is shared."""
        other = mint_id()
        create_tenant(stack.owner, other, "a:b")
        claims = {"user_id": "maya", "tenant_id": str(other), "scope_id": "x", "agent_id": "y"}
        with client_of(stack, recall_parts(stack), "ingest", "read") as there:
            turn = _turn("a:b", user_id="b:c", conversation_id="d", metadata=claims)
            assert there.post("/v1/turns", json=turn).status_code == 202
        assert client.post("/v1/turns", json=_turn("a:b", user_id="b", conversation_id="c:d")).status_code == 202

        assert _listed(client, "maya") == []
        assert len(_listed(client, "b:c")) == len(_listed(client, "b")) == 1
        told = client.get("/v1/turns", params={"user_id": "b:c"}).json()["turns"][0]
        assert (told["metadata"], told["user_id"]) == (claims, "b:c")
