"""Policies, pins, dry runs and as-of reads over HTTP, and the commands that show them to a person."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli import pin as pin_module
from memoryos_pipeline.cli import policy as policy_module
from memoryos_pipeline.cli.main import app
from tests.builders import START, set_clock
from tests.integration.api.conftest import Api
from tests.integration.readmodels.past import live_a_past


@pytest.fixture
def cli(api: Api, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """A runner whose commands reach the API of the test."""

    def fetch(path: str, params: Mapping[str, Any] | None = None) -> Any:
        return api.client.get(path, params=dict(params or {})).raise_for_status().json()

    def send(method: str, path: str, body: Mapping[str, Any]) -> Any:
        return api.client.request(method, path, json=dict(body)).raise_for_status().json()

    for module in (policy_module, pin_module):
        monkeypatch.setattr(module, "fetch", fetch, raising=False)
        monkeypatch.setattr(module, "send", send)
    return CliRunner()


class TestPolicy:
    def test_the_default_speaks_in_words(self, api: Api) -> None:
        """An untouched item lives 115 days; nobody has set a policy yet."""
        answer = api.client.get("/v1/policy", params={"user_id": "maya"}).json()

        assert "an untouched item lives 115 days" in answer["words"]["forget"]
        assert (answer["in_force_for"], answer["preset"], answer["version"]) == ("everybody", "default", None)
        assert answer["settings"]["strength_days"] == 50.0

    def test_versions_of_tenant_and_user(self, api: Api) -> None:
        """A preset for all, a change for one; each is a version that says what it changed."""
        everyone = api.client.put("/v1/policy", json={"preset": "memorybank"}).json()
        maya = api.client.put("/v1/policy", json={"user_id": "maya", "settings": {"strength_days": 9}}).json()
        versions = api.client.get("/v1/policy/versions", params={"user_id": "maya"}).json()["versions"]

        assert "lives 2.3 days" in everyone["words"]["forget"]
        assert (maya["in_force_for"], maya["preset"], maya["version"]) == ("maya", "memorybank", 1)
        assert maya["changed"] == {"strength_days": [1.0, 9.0]}
        assert [each["version"] for each in versions] == [1]
        assert api.client.get("/v1/policy", params={"user_id": "jun"}).json()["preset"] == "memorybank"

    @pytest.mark.parametrize(
        ("body", "word"),
        [
            ({"preset": "memgpt"}, "bai_lab"),
            ({"settings": {"colour": 1}}, "colour"),
            ({"settings": {"cool_below": 3}}, "cool_below"),
            ({"settings": {"page_size_turns": 99}}, "hot_capacity_turns"),
        ],
    )
    def test_what_cannot_act_is_refused(self, api: Api, body: dict[str, Any], word: str) -> None:
        """The answer names the field or the presets there are, and nothing is stored."""
        answer = api.client.put("/v1/policy", json=body)

        assert answer.status_code == 422
        assert word in answer.json()["error"]["message"]
        assert api.client.get("/v1/policy/versions").json() == {"versions": []}


class TestAsOf:
    def test_listings_show_a_moment(self, api: Api) -> None:
        """Before anything was recorded there is nothing; what cannot be read so says so; a bare time is refused."""
        set_clock(api.stack, START)
        live_a_past(api.stack.app, api.stack.tenant_id)
        before, after = START - timedelta(days=1), START + timedelta(days=1)
        for listing in ("turns", "pages", "knowledge"):
            gone, here = (
                api.client.get(f"/v1/{listing}", params={"as_of": at.isoformat(), "user_id": "maya"}).json()[listing]
                for at in (before, after)
            )
            assert gone == []
            assert len(here) == len(api.client.get(f"/v1/{listing}").json()[listing]) > 0

        asked = {"query": "canary", "user_id": "maya", "agent_id": "companion"}
        gone, here = (
            api.client.post("/v1/search", json={**asked, "as_of": at.isoformat()}).json() for at in (before, after)
        )
        assert (gone["results"], here["degraded"]) == ([], ["as_of: ranked by words only"])
        assert {result["kind"] for result in here["results"]} == {"turn", "knowledge"}
        assert api.client.get("/v1/links", params={"as_of": before.isoformat()}).status_code == 422
        assert api.client.get("/v1/turns", params={"as_of": "2026-03-01T00:00:00"}).status_code == 422


def _json(runner: CliRunner, *words: str) -> dict[str, Any]:
    """Run a command and read its answer; the server in this process logs before it."""
    answer: dict[str, Any] = json.loads(runner.invoke(app, [*words, "--json"]).output.splitlines()[-1])
    return answer


class TestCommands:
    def test_show_set_and_diff(self, cli: CliRunner) -> None:
        """A person reads lifetimes in words, sets a preset and sees what is different."""
        assert "lives 115 days" in cli.invoke(app, ["policy", "show"]).output
        assert "cold after 12 retrievals" in cli.invoke(app, ["policy", "show", "seed000"]).output
        changed = _json(cli, "policy", "set", "--user", "maya", "--preset", "seed000", "ttl_days=30")
        assert changed["settings"]["ttl_days"] == 30.0
        compared = _json(cli, "policy", "diff", "seed000", "--user", "maya")

        assert compared["settings"] == {"ttl_days": [None, 30.0]}
        assert "ends 30 days after recording" in compared["words"]["end"][1]
        assert "are the same" in cli.invoke(app, ["policy", "diff", "mem0", "mem0"]).output

    def test_wrong_words_are_answered(self, cli: CliRunner) -> None:
        """Neither a change without a value nor an unknown name reaches the server."""
        assert "name=value" in cli.invoke(app, ["policy", "set"]).output
        assert "there is no such setting" in cli.invoke(app, ["policy", "set", "colour=blue"]).output

    def test_pins_and_dry_runs(self, cli: CliRunner, api: Api) -> None:
        """A statement is pinned once; what is due is shown and still there afterwards."""
        past = live_a_past(api.stack.app, api.stack.tenant_id)
        first, again = (cli.invoke(app, ["pin", str(past.new)]).output for _ in range(2))
        set_clock(api.stack, datetime(2099, 1, 1, tzinfo=UTC))
        due = ["forgetting", "--user", "maya", "--agent", "companion"]
        seen = [_json(cli, *due) for _ in range(2)]

        assert ("nothing but a person" in first, "already" in again) == (True, True)
        assert seen[0] == seen[1]
        assert (seen[0]["would_forget"], seen[0]["live"]) == (1, 2)
        assert "other canary" in cli.invoke(app, due).output
        assert "It fades from now on." in cli.invoke(app, ["unpin", str(past.new)]).output
