"""`memoryos index` builds the index search uses while others write, tells what pays, and takes it away again."""

import json
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli.main import app
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.recall import gather as gathering
from memoryos_pipeline.store.search import ScopeKey, read_frame
from tests.builders_recall import remember
from tests.conftest import Stack

INTERRUPTED = """
    update pg_index set indisvalid = false where indexrelid = 'memoryos.embedding_hnsw_1'::regclass
"""


def run(*words: str) -> dict[str, Any]:
    """What a command says about the one space."""
    result = CliRunner().invoke(app, ["index", *words, "--json"])
    assert result.exit_code == 0, result.output
    spaces: list[dict[str, Any]] = json.loads(result.stdout)["spaces"]
    return spaces[0]


@pytest.fixture
def reachable(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A database with two indexed turns that the command finds."""
    remember(stack, ("Maya", "The spare key is under the pot."), ("Maya", "The kettle is blue."))
    for name, role in (("DATABASE", "app"), ("LEDGER", "ledger"), ("OWNER", "owner")):
        monkeypatch.setenv(f"MEMORYOS_{name}_URL", stack.url(role))
    monkeypatch.setenv("MEMORYOS_DATA_DIR", "/nowhere")
    return stack


class TestIndex:
    def test_it_builds_where_it_pays_and_drops_where_it_does_not(
        self, reachable: Stack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Small memories get none; large ones do, search knows it at once, a broken one is replaced, and it goes."""

        def is_used() -> bool:
            with reachable.app.snapshot(reachable.tenant_id) as connection:
                key = ScopeKey(reachable.tenant_id, reachable.tenant_id)
                return read_frame(connection, key, HashingEmbedder()).has_hnsw

        before = run("build")
        assert (before["vectors"], before["largest_memory"], before["pays"], before["index"]) == (2, 2, False, None)
        monkeypatch.setattr(gathering, "EXACT_UP_TO", 1)
        monkeypatch.setenv("MEMORYOS_HNSW_VECTORS", "2")
        assert (run("build")["index"], is_used()) == ("valid", True)
        with psycopg.connect(reachable.url("superuser"), autocommit=True) as connection:
            connection.execute(INTERRUPTED)
        assert (run("status")["index"], is_used()) == ("broken", False)
        assert (run("build")["index"], is_used()) == ("valid", True)
        assert run("drop")["index"] == "valid"
        monkeypatch.setenv("MEMORYOS_HNSW_VECTORS", "3")
        assert (run("drop")["index"], is_used()) == (None, False)

    def test_an_unknown_space_is_named(self, reachable: Stack) -> None:
        """A space that is not there ends the command with those that are."""
        result = CliRunner().invoke(app, ["index", "build", "--space", "7"])

        assert result.exit_code == 1
        assert "there is no vector space 7; there are: 1" in result.output
