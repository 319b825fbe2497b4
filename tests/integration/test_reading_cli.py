"""The reading commands and the doctor, against a real API, database and broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner, Result

from memoryos_pipeline.cli import doctor, key, show, status
from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import authenticate, mint_key
from tests.conftest import Stack
from tests.integration.readmodels.past import Past, live_a_past
from tests.serving import serving

app = typer.Typer()
app.command()(doctor.doctor)
app.command()(show.show)
app.command()(status.status)
app.add_typer(key.app, name="key")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


def _json(*arguments: str) -> Any:
    result = _run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])  # the API of these tests logs into the same stream


@pytest.fixture
def reach(stack: Stack, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment points at this test's database and broker."""
    for role in ("owner", "ledger"):
        monkeypatch.setenv(f"MEMORYOS_{role.upper()}_URL", stack.url(role))
    monkeypatch.setenv("MEMORYOS_BROKER_URL", valkey.url)
    monkeypatch.setenv("MEMORYOS_API_KEY", mint_key(stack.owner, stack.tenant_id, label="ours"))


@pytest.fixture
def past(stack: Stack, reach: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Past]:
    """A memory with a past, and an API that serves it."""
    parts = Parts(database=stack.app, embedder=None, language_model=None)  # type: ignore[arg-type]
    with serving(parts) as url:
        monkeypatch.setenv("MEMORYOS_API_URL", url)
        yield live_a_past(stack.app, stack.tenant_id)


class TestShow:
    @pytest.mark.parametrize(
        ("what", "listing", "count"),
        [("turn", "turns", 7), ("pages", "pages", 1), ("segment", "segments", 1), ("knowledge", "knowledge", 2),
         ("history", "knowledge", 3), ("link", "links", 1), ("profile", "profile", 1),
         ("conversation", "conversations", 1)],
    )  # fmt: skip
    def test_every_tier_is_a_table_and_json(self, past: Past, what: str, listing: str, count: int) -> None:
        """Both forms show the rows of the user."""
        assert len(_json("show", what, "--user", past.user_id)[listing]) == count
        assert _run("show", what, "--user", past.user_id).exit_code == 0

    def test_a_statement_shows_where_it_came_from(self, past: Past) -> None:
        """Provenance back to turns, with what it replaced."""
        shown = _run("show", "knowledge", str(past.new)).output

        assert "new canary" in shown
        assert "turn 2 canary" in shown
        assert "superseded" in shown

    def test_a_narrow_window_cuts_nothing(self, past: Past) -> None:
        """In 60 columns every id is whole and every word of a turn is there."""
        turns = _json("show", "turns", "--user", past.user_id)["turns"]
        shown = CliRunner().invoke(app, ["show", "turns", "--user", past.user_id], env={"COLUMNS": "60"}).stdout
        flowed = " ".join(shown.split())

        assert all(turn["turn_id"] in flowed and turn["content"] in flowed for turn in turns)

    def test_a_list_goes_on_where_it_says(self, past: Past) -> None:
        """Followed by its cursors, pages of two turns are all of them, each once."""
        seen: list[str] = []
        cursor: list[str] = []
        while True:
            answer = _json("show", "turns", "--user", past.user_id, "--limit", "2", *cursor)
            seen += [turn["turn_id"] for turn in answer["turns"]]
            if answer["cursor"] is None:
                break
            cursor = ["--cursor", answer["cursor"]]
            assert answer["cursor"] in _run("show", "turns", "--user", past.user_id, "--limit", str(len(seen))).stdout

        assert len(seen) == len(set(seen)) == 7

    def test_what_cannot_be_shown_ends_with_a_sentence(self, past: Past) -> None:
        """A wrong word or an unknown id is one line and status 1."""
        for arguments in (("show", "dreams"), ("show", "page", str(past.page)), ("show", "turn", str(past.new))):
            result = _run(*arguments)
            assert result.exit_code == 1
            assert result.stderr.startswith("memoryos: ")
            assert result.stderr.count("\n") == 1


class TestStatus:
    @pytest.mark.usefixtures("past")
    def test_says_that_everything_is_done(self) -> None:
        """Work by kind and tiers by number."""
        tiers = {row["what"]: row["count"] for row in _json("status")["tiers"]["tiers"]}

        assert tiers["turns in the verbatim buffer"] == 2
        assert tiers["statements held true"] == 2
        assert "Everything is done." in _run("status").output

    @pytest.mark.usefixtures("reach")
    def test_without_an_api_it_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No traceback when nothing is running."""
        monkeypatch.setattr("memoryos_pipeline.client.transport.ATTEMPTS", 1)
        monkeypatch.setenv("MEMORYOS_API_URL", f"http://127.0.0.1:{free_port()}")
        result = _run("status")

        assert result.exit_code == 1
        assert result.output.startswith("memoryos: ")


class TestDoctor:
    def _checks(self, result: Result) -> dict[str, bool]:
        return {check["name"]: check["is_good"] for check in json.loads(result.stdout)["checks"]}

    @pytest.mark.usefixtures("reach")
    def test_finds_a_setting_that_loses_turns(self) -> None:
        """The tests' own server runs with fsync off, and the doctor says what that costs."""
        result = _run("doctor", "--json")

        assert result.exit_code == 1
        assert self._checks(result) == {
            "schema": True, "fsync": False, "full_page_writes": True, "synchronous_commit": True, "roles": True,
            "walls": True, "idle transactions": True, "connections": True, "broker": True, "alarms": True,
            "marks": True, "vectors": True,
        }  # fmt: skip

    @pytest.mark.usefixtures("reach")
    def test_finds_violations_in_every_tenant(self, stack: Stack) -> None:
        """A broken invariant is a row with a sentence, whatever else is well."""
        past = live_a_past(stack.app, stack.tenant_id)
        assert json.loads(_run("doctor", "--at-rest", "--json").stdout)["violations"] == []
        with stack.owner.transaction(stack.tenant_id) as connection:
            connection.execute(text("delete from memoryos.turn where tenant_id = :tenant and seq = 6"), past.values())
        found = json.loads(_run("doctor", "--json").stdout)["violations"]

        assert [(row["invariant"], row["tenant"]) for row in found] == [("I2", "test")]
        assert "restore the missing turns" in _run("doctor").output

    @pytest.mark.usefixtures("reach")
    def test_finds_a_broker_that_is_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its absence loses nothing, and is still told."""
        monkeypatch.setenv("MEMORYOS_BROKER_URL", f"redis://127.0.0.1:{free_port()}/0")

        assert self._checks(_run("doctor", "--json"))["broker"] is False


@pytest.mark.usefixtures("reach")
class TestKey:
    def test_a_created_key_works_until_it_is_revoked(self, stack: Stack) -> None:
        """Minted for the only tenant, listed by its beginning, revoked by it."""
        minted = _json("key", "create", "--label", "laptop", "--scopes", "read")
        listed = _json("key", "list")["keys"]

        assert authenticate(stack.app, minted["key"]).scopes == {"read"}
        assert [row["label"] for row in listed] == ["ours", "laptop"]
        assert minted["key"] not in json.dumps(listed)
        assert _run("key", "revoke", listed[1]["prefix"]).exit_code == 0
        assert [row["revoked_at"] is None for row in _json("key", "list")["keys"]] == [True, False]

    def test_the_first_key_needs_no_key(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """On a database of one's own the URLs are enough to mint one."""
        monkeypatch.delenv("MEMORYOS_API_KEY")
        monkeypatch.setenv("MEMORYOS_DATA_DIR", str(tmp_path))

        assert _json("key", "create", "--tenant", "acme", "--new-tenant")["key"].startswith("mem_")

    def test_a_tenant_is_created_only_on_purpose(self) -> None:
        """A slip in a name makes no tenant; --new-tenant does."""
        assert _run("key", "create", "--tenant", "acme").exit_code == 1
        assert _json("key", "create", "--tenant", "acme", "--new-tenant")["tenant"] == "acme"
        assert _json("key", "create", "--tenant", "acme", "--new-tenant")["tenant"] == "acme"
        assert "name one tenant" in _run("key", "create").output

    def test_what_does_not_exist_is_refused(self) -> None:
        """An unknown scope or key ends with a sentence."""
        assert _run("key", "create", "--scopes", "everything").exit_code == 1
        assert _run("key", "revoke", "mem_nothing").exit_code == 1
