"""Bringing forgotten knowledge back over HTTP."""

from uuid import UUID

from sqlalchemy import text

from tests.integration.api.conftest import Api
from tests.integration.readmodels.past import live_a_past

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

    def test_what_is_unknown_is_not_found(self, api: Api) -> None:
        """An id of nobody is a 404; one that is no id is refused with its field."""
        assert api.client.post(f"/v1/knowledge/{UUID(int=1)}/restore", json={}).status_code == 404
        assert api.client.post("/v1/knowledge/nonsense/restore", json={}).status_code == 422
