"""Forgetting one statement and bringing it back over HTTP, by SDK and by command."""

import json
from uuid import UUID

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from memoryos_pipeline.cli.main import app
from memoryos_pipeline.client import MemoryClient
from memoryos_pipeline.client.errors import InvalidRequestError, NotFoundError
from memoryos_pipeline.store.tenants import mint_key
from tests.integration.api.conftest import Api
from tests.integration.readmodels.past import live_a_past
from tests.serving import serving

ONE_OF = "select knowledge_id from memoryos.knowledge where status = :status and content_sha256 is not null limit 1"


def _one(api: Api, status: str) -> UUID:
    with api.stack.app.transaction(api.stack.tenant_id) as connection:
        found: UUID = connection.execute(text(ONE_OF), {"status": status}).scalar_one()
        return found


def _forget(api: Api, knowledge_id: UUID) -> None:
    with api.stack.app.transaction(api.stack.tenant_id) as connection:
        connection.execute(
            text(
                "update memoryos.knowledge set status = 'forgotten', forgotten_at = memoryos.now(), "
                "purge_at = memoryos.now() + interval '30 days' where knowledge_id = :id"
            ),
            {"id": knowledge_id},
        )


class TestRestore:
    def test_forgotten_knowledge_is_live_again(self, api: Api) -> None:
        """Once; asked again, nothing is left to do."""
        live_a_past(api.stack.app, api.stack.tenant_id)
        knowledge_id = _one(api, "active")
        _forget(api, knowledge_id)
        answers = [api.client.post(f"/v1/knowledge/{knowledge_id}/restore", json={}).json() for _ in range(2)]

        assert [answer["restored"] for answer in answers] == [True, False]
        listed = [each["knowledge_id"] for each in api.client.get("/v1/knowledge").json()["knowledge"]]
        assert str(knowledge_id) in listed

    def test_forgotten_by_a_person_and_brought_back(self, api: Api) -> None:
        """By mem0's names: got, deleted, in no list, its versions still told, restored; twice is once."""
        live_a_past(api.stack.app, api.stack.tenant_id)
        knowledge_id = str(_one(api, "active"))
        key = mint_key(api.stack.owner, api.stack.tenant_id)
        with serving(api.parts) as url, MemoryClient(url, key) as client:
            said = client.get(knowledge_id)
            user_id = said["user_id"]
            assert [client.delete(knowledge_id)["forgotten"] for _ in range(2)] == [True, False]
            assert knowledge_id not in {each["knowledge_id"] for each in client.get_all(user_id=user_id)}
            assert client.history(knowledge_id)[-1]["status"] == "forgotten"
            assert client.restore(knowledge_id)["restored"]
            assert client.pin(knowledge_id)["changed"]
            assert client.unpin(knowledge_id)["changed"]
            assert client.get(knowledge_id)["content"] == said["content"]

    def test_a_person_writes_it_anew(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        """By SDK and by command: the version that holds now is told, the old one is history; nonsense is refused."""
        live_a_past(api.stack.app, api.stack.tenant_id)
        old = str(_one(api, "active"))
        key = mint_key(api.stack.owner, api.stack.tenant_id)
        with serving(api.parts) as url, MemoryClient(url, key) as client:
            new = client.update(old, "彼女は今、屋久島に住んでいる")
            assert new["changed"]
            assert new["verdict_id"]
            assert [each["status"] for each in client.history(new["knowledge_id"])][-2:] == ["superseded", "active"]
            with pytest.raises(NotFoundError):
                client.update(old, "something")
            for content in ("", "  ", "a\x00b", "x" * 10_000):
                with pytest.raises(InvalidRequestError):
                    client.update(new["knowledge_id"], content)
            monkeypatch.setenv("MEMORYOS_API_URL", url)
            monkeypatch.setenv("MEMORYOS_API_KEY", key)
            told = CliRunner().invoke(app, ["revise", new["knowledge_id"], "그녀는 제주도에 산다"])
            assert "conflicts undo" in told.stdout
            [live] = [
                each for each in client.get_all(user_id=client.get(old)["user_id"]) if "제주도" in each["content"]
            ]
            again = CliRunner().invoke(app, ["revise", live["knowledge_id"], "그녀는 제주도에 산다", "--json"])
            assert json.loads(again.stdout.splitlines()[-1])["changed"] is False

    def test_an_id_is_no_way_to_another_path(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever is given for an id or a name stays one segment: `unpin ../users/maya?` erases nobody."""
        key = mint_key(api.stack.owner, api.stack.tenant_id)
        turn = {
            "conversation_id": "a/../b", "client_turn_id": "1", "role": "user", "content": "I moved.",
            "occurred_at": "2026-05-04T18:02:00Z",
        }  # fmt: skip
        for user_id in ("maya", "../maya"):
            assert api.client.post("/v1/turns", json={"user_id": user_id, **turn}).status_code == 202
        with serving(api.parts) as url, MemoryClient(url, key) as client:
            monkeypatch.setenv("MEMORYOS_API_URL", url)
            monkeypatch.setenv("MEMORYOS_API_KEY", key)
            for command in (["forget"], ["unpin"], ["restore"]):
                assert CliRunner().invoke(app, [*command, "../users/maya?x="]).exit_code == 1
            assert CliRunner().invoke(app, ["revise", "../users/maya?x=", "words"]).exit_code == 1
            assert client.watermarks("a/../b", user_id="../maya")["recorded"] == 1
            assert client.delete_user("../maya")["rows_removed"]
            assert [turn["user_id"] for turn in client.turns(user_id="maya")] == ["maya"]

    def test_what_is_unknown_is_not_found(self, api: Api) -> None:
        """An id of nobody is a 404; one that is no id is refused with its field."""
        assert api.client.post(f"/v1/knowledge/{UUID(int=1)}/restore", json={}).status_code == 404
        assert api.client.post("/v1/knowledge/nonsense/restore", json={}).status_code == 422
        assert api.client.delete(f"/v1/knowledge/{UUID(int=1)}").status_code == 404
