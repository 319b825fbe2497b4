"""`memoryos ingest` records a file by either way in, once, and says what it did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner, Result

from memoryos_pipeline.cli.clock import clock
from memoryos_pipeline.cli.ingest import ingest
from memoryos_pipeline.cli.readers import read_turns
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.readmodels.dump import canonical_dump
from memoryos_pipeline.settings import QUEUES
from tests.conftest import Stack
from tests.locomo import write_locomo
from tests.processes import System, running_system

UTC_ZONE = ZoneInfo("UTC")
COMMANDS = typer.Typer()
COMMANDS.command()(ingest)
COMMANDS.command()(clock)


@pytest.fixture
def system(stack: Stack, valkey: EmbeddedValkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    with running_system(stack, valkey, tmp_path / "processes.log") as made:
        for name, value in made.environment().items():
            if name.startswith("MEMORYOS_"):
                monkeypatch.setenv(name, value)
        monkeypatch.setenv("MEMORYOS_DATA_DIR", str(tmp_path))
        yield made


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    return write_locomo(tmp_path / "locomo.json", samples=2, sessions=3, turns=6)


def _run(*words: object) -> Result:
    return CliRunner().invoke(COMMANDS, [str(word) for word in words])


def _ingest(path: Path, *options: str) -> dict[str, Any]:
    result = _run("ingest", path, "--json", *options)
    assert result.exit_code == 0, result.output
    outcome: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return outcome


def _dump(system: System) -> list[str]:
    with system.stack.app.transaction(system.stack.tenant_id) as connection:
        return canonical_dump(connection, system.stack.tenant_id)


class TestIngest:
    def test_a_second_run_adds_nothing(self, system: System, locomo: Path) -> None:
        """Everything is recorded once; the second run finds it there."""
        first, before = _ingest(locomo), _dump(system)
        second = _ingest(locomo, "--batch", "7")

        assert (first["turns"], first["recorded"], first["already_there"]) == (36, 36, 0)
        assert (second["recorded"], second["already_there"]) == (0, 36)
        assert _dump(system) == before
        assert len(before) == 36

    @pytest.mark.usefixtures("system")
    def test_an_interrupted_run_is_taken_up_again(self, locomo: Path, tmp_path: Path) -> None:
        """What was recorded before the interruption is found, the rest is added behind it."""
        turns = read_turns(locomo, UTC_ZONE)
        part = tmp_path / "part.jsonl"
        part.write_text("\n".join(json.dumps(turn) for turn in turns[:10]), encoding="utf-8")
        _ingest(part)

        assert (_ingest(locomo)["recorded"], _ingest(locomo)["already_there"]) == (26, 36)

    def test_the_queue_gives_the_same_memory(self, system: System, locomo: Path) -> None:
        """Through the queue the same turns are recorded, and a second run publishes none of them."""
        with system.worker():
            first = _ingest(locomo, "--through", "queue")
        second = _ingest(locomo, "--through", "queue")

        assert (first["recorded"], second["recorded"], second["already_there"]) == (36, 0, 36)
        assert _dump(system)[0].find('"client_turn_id": "D1:1"') > 0

    def test_session_dates_are_local_to_the_option(self, system: System, locomo: Path) -> None:
        """--timezone decides which moment a session date is."""
        _ingest(locomo, "--timezone", "Asia/Tokyo")

        assert '"occurred_at": "2023-01-02T04:01:00+00:00"' in _dump(system)[0]
        assert '"utc_offset_minutes": 540' in _dump(system)[0]

    @pytest.mark.usefixtures("system")
    def test_without_json_a_table_is_printed(self, locomo: Path) -> None:
        """People read counts, not braces."""
        result = _run("ingest", locomo)

        assert "recorded" in result.stdout
        assert "36" in result.stdout


class TestIngestAsLived:
    @pytest.mark.slow
    def test_recorded_time_is_lived_and_held(self, system: System, tmp_path: Path) -> None:
        """Turns are recorded on their own days, idle tails are sealed by the weekly sweep, and a second run stays."""
        path = write_locomo(tmp_path / "locomo.json", samples=1, sessions=2, turns=6)
        with system.worker(",".join(QUEUES)), system.process("relay"):
            first = _ingest(path, "--as-lived")
            second = _ingest(path, "--as-lived")

        assert (first["recorded"], second["recorded"], second["already_there"]) == (12, 0, 12)
        assert first["clock_held_at"] == second["clock_held_at"] == "2023-05-03T14:03:30+00:00"
        with system.stack.app.transaction(system.stack.tenant_id) as connection:
            days = text("select distinct recorded_at::date::text from memoryos.turn order by 1")
            sealed = text("select min(sealed_at)::date::text from memoryos.page")
            assert list(connection.execute(days).scalars()) == ["2023-01-02", "2023-05-03"]
            assert connection.execute(sealed).scalar() == "2023-01-09"


class TestRefuse:
    def test_a_bad_line_ends_the_command_before_anything_is_sent(self, system: System, tmp_path: Path) -> None:
        """The sentence names file, line and field, and no turn of the file is recorded."""
        path = tmp_path / "bad.jsonl"
        good = {"user_id": "u", "conversation_id": "c", "client_turn_id": "1", "role": "user", "content": "x"}
        good["occurred_at"] = "2026-05-04T18:02:00Z"
        path.write_text(json.dumps(good) + '\n{"user_id": "u"}\n', encoding="utf-8")
        result = _run("ingest", path)

        assert result.exit_code == 1
        assert "bad.jsonl:2: role: is required" in result.stderr
        assert _dump(system) == []

    @pytest.mark.parametrize("through", ["http", "queue"])
    def test_a_key_used_for_another_body_is_told(self, system: System, locomo: Path, through: str) -> None:
        """The command fails and names the turn, by either way in."""
        changed = [{**turn, "content": "something else"} for turn in read_turns(locomo, UTC_ZONE)[:1]]
        with system.client() as client:
            client.add_turns(changed)
        with system.worker():
            result = _run("ingest", locomo, "--through", through)

        assert result.exit_code == 1
        assert "D1:1" in result.output

    def test_without_a_system_the_sentence_says_what_to_do(
        self, locomo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No key and no running system: start one, or name one."""
        monkeypatch.setenv("MEMORYOS_DATA_DIR", str(tmp_path / "nothing"))
        monkeypatch.delenv("MEMORYOS_API_KEY", raising=False)
        result = _run("ingest", locomo)

        assert result.exit_code == 1
        assert "memoryos up" in result.stderr

    def test_a_time_zone_that_does_not_exist_is_a_usage_error(self, locomo: Path) -> None:
        """Said before the file is read."""
        result = _run("ingest", locomo, "--timezone", "Mars/Base")

        assert result.exit_code == 2
        assert "Mars/Base" in result.stderr


class TestClock:
    def test_recorded_time_is_shown_and_released(self, system: System) -> None:
        """A simulation that left the clock held can be ended."""
        with system.stack.owner.across_tenants() as connection:
            connection.execute(text("update memoryos.clock set frozen_at = '2026-05-04T00:00:00Z'"))

        assert "2026-05-04" in _run("clock").stdout
        assert json.loads(_run("clock", "--release", "--json").stdout) == {"held_at": None}
        assert "runs" in _run("clock").stdout
