"""`memoryos conflicts`: what was decided is listed, explained and taken back, against a real API and database."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memoryos_pipeline.cli.conflicts import app
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.store.reading_sql import read_rows, reading_url
from memoryos_pipeline.store.tenants import mint_key
from tests.conftest import Stack
from tests.integration.stages.cold import Cold
from tests.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "read-models.md"


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "240"})


def _json(*arguments: str) -> Any:
    result = _run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture
def cold(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cold]:
    """Maya moved from Leeds to Ghent, and Ken said something; an API serves it."""
    cold = Cold(stack, policy=replace(DEFAULT, graph="triples"))
    for day, said in ((0, "residence=Leeds"), (9, "residence=Ghent")):
        cold.page(said, day=day)
        cold.page("residence=Oslo", day=day, user="ken")
        cold.work()
    monkeypatch.setenv("MEMORYOS_API_KEY", mint_key(stack.owner, stack.tenant_id))
    with serving(cold.parts) as url:
        monkeypatch.setenv("MEMORYOS_API_URL", url)
        yield cold


class TestConflicts:
    def test_a_decision_is_listed_shown_and_undone(self, cold: Cold) -> None:
        """As tables and as JSON; the exact earlier row holds again, and the undoing can itself be taken back."""
        [row] = _json("list", "--user", "maya", "--decision", "UPDATE")["verdicts"]
        verdict = row["verdict_id"]
        listed = _run("list", "--user", "maya").output
        shown = _run("show", verdict).output

        assert _json("show", verdict) == row
        assert {row["decision"] for row in _json("list")["verdicts"]} == {"UPDATE", "NOOP"}
        assert len(_json("list", "--limit", "1")["verdicts"]) == 1
        assert "the residence is Leeds" in listed
        assert "the residence is Ghent" in listed
        assert f"memoryos conflicts undo {verdict}" in shown

        undone = _run("undo", verdict)
        [undoing] = re.findall(r"memoryos conflicts undo (\S+)", undone.output)
        assert {"Maya: the residence is Leeds", "Maya: the residence is Ghent"} <= set(cold.live())
        assert _json("show", undoing)["undoes"] == verdict
        assert "(undone)" in _run("list", "--user", "maya").output

        assert _json("undo", undoing)["undone_by"]
        assert "Maya: the residence is Leeds" not in cold.live()

    def test_what_cannot_be_undone_ends_with_a_sentence(self, cold: Cold) -> None:
        """Twice, unknown, or no id at all: one line and status 1, never a traceback."""
        [row] = _json("list", "--user", "maya", "--decision", "UPDATE")["verdicts"]
        _run("undo", row["verdict_id"])
        unknown = "018f0000-0000-7000-8000-000000000000"
        for arguments in (("undo", row["verdict_id"]), ("undo", unknown), ("show", unknown), ("show", "nothing")):
            result = _run(*arguments)
            assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.output
            assert result.stderr.startswith("memoryos: ")
        assert "Nothing was decided yet." in _run("list", "--user", "nobody").output

    def test_the_views_say_what_the_commands_say(self, cold: Cold) -> None:
        """The queries of the documentation give the same decision, and what follows from it."""
        part = PAGE.read_text(encoding="utf-8").split("## Decisions and relations")[1].split("```sql")[1]
        queries = part.split("```")[0]
        url = reading_url(cold.stack.url("app"), cold.tenant_id)
        decisions, relations, entities, _ = read_rows(url, queries)
        [row] = _json("list", "--user", "maya")["verdicts"]

        assert decisions.rows == [(row["decision"], row["old_content"], row["new_content"], row["reason"])]
        assert relations.rows == [("Maya", "lives_in", "Ghent")]
        assert {name for name, _, _ in entities.rows} == {"Maya", "Leeds", "Ghent"}
