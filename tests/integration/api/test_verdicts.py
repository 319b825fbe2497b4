"""Decisions and relations over HTTP: read, undone, and refused with a sentence."""

from dataclasses import replace

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.policies import DEFAULT
from tests.integration.api.conftest import Api
from tests.integration.stages.cold import Cold


class TestVerdicts:
    def test_a_decision_is_listed_shown_undone_and_not_undone_twice(self, api: Api) -> None:
        """The answer of each step leads to the next; another tenant's reader sees nothing of it."""
        cold = Cold(api.stack, policy=replace(DEFAULT, graph="triples"))
        for day, said in ((0, "residence=Leeds"), (9, "residence=Ghent")):
            cold.page(said, day=day)
            cold.work()

        [row] = api.client.get("/v1/verdicts", params={"user_id": "maya", "decision": "UPDATE"}).json()["verdicts"]
        path = f"/v1/verdicts/{row['verdict_id']}"
        assert api.client.get(path).json() == row
        assert (row["old_content"], row["can_be_undone"]) == ("Maya: the residence is Leeds", True)

        asked = {"user_id": "maya", "entity": "Ghent"}
        [relation] = api.client.get("/v1/relations", params=asked).json()["relations"]
        assert (relation["relation"], relation["target"]) == ("lives_in", "Ghent")

        undone = api.client.post(f"{path}/undo")
        again = api.client.post(f"{path}/undo")
        assert (undone.status_code, again.status_code) == (200, 409)
        assert again.json()["error"]["code"] == "cannot_undo"
        assert api.client.get(path).json()["undone_at"] is not None
        assert api.client.get(f"/v1/verdicts/{undone.json()['undone_by']}").json()["undoes"] == row["verdict_id"]
        assert api.client.get("/v1/relations", params={"user_id": "maya", "entity": "Leeds"}).json()["relations"]

    def test_what_is_unknown_is_said_to_be(self, api: Api) -> None:
        """404 for a decision nobody made, 422 for a decision that does not exist."""
        assert api.client.get(f"/v1/verdicts/{mint_id()}").status_code == 404
        assert api.client.post(f"/v1/verdicts/{mint_id()}/undo").status_code == 404
        assert api.client.get("/v1/verdicts", params={"decision": "MAYBE"}).status_code == 422
