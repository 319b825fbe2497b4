"""Whatever cannot be used ends a command with a sentence on standard error, never with a traceback."""

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from memoryos_pipeline.cli.main import app, main
from memoryos_pipeline.settings import SettingsError

NOBODY_LISTENS = "postgresql://memoryos_owner:hunter2@127.0.0.1:1/memoryos"


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def _sentence(result: Result) -> str:
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "hunter2" not in result.output
    return result.stderr


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYOS_DATA_DIR", str(tmp_path / "data"))


class TestNothingRunning:
    @pytest.mark.parametrize(
        "words",
        [("env",), ("sql", "select 1"), ("status",), ("search", "cat", "--user", "maya"), ("clock",), ("doctor",)],
    )
    def test_a_command_says_how_to_start_a_system(self, words: Sequence[str]) -> None:
        """The sentence names `memoryos up`."""
        assert "memoryos up" in _sentence(_run(*words))

    def test_an_api_that_is_away_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where no answer came from is said, so that a wrong URL is seen."""
        monkeypatch.setattr("memoryos_pipeline.client.transport.ATTEMPTS", 1)
        monkeypatch.setenv("MEMORYOS_API_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("MEMORYOS_API_KEY", "mem_x")

        assert "http://127.0.0.1:1" in _sentence(_run("status"))


class TestDatabaseAway:
    def test_key_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With URLs of one's own there may be no `memoryos up` to look for."""
        for role in ("OWNER", "LEDGER"):
            monkeypatch.setenv(f"MEMORYOS_{role}_URL", NOBODY_LISTENS)

        assert "Connection refused" in _sentence(_run("key", "list"))

    def test_migrate_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the driver said, without its link to a manual."""
        monkeypatch.setenv("MEMORYOS_OWNER_URL", NOBODY_LISTENS)

        assert "Connection refused" in _sentence(_run("migrate"))


class TestWorker:
    def test_a_queue_that_does_not_exist_is_refused(self) -> None:
        """A slip in a name would leave a queue unserved."""
        assert "'embd'" in _sentence(_run("worker", "--queues", "heat,embd"))


class TestApi:
    def test_a_taken_port_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The supervisor looks for these words to choose another one."""
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            monkeypatch.setenv("MEMORYOS_API_PORT", str(holder.getsockname()[1]))

            assert "address already in use" in _sentence(_run("api")).lower()


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DATABASE_URL", "mysql://hunter2"),
            ("OWNER_URL", "hunter2"),
            ("LEDGER_URL", "postgresql://"),
            ("BROKER_URL", "amqp://hunter2"),
            ("API_URL", "hunter2:8765"),
            ("API_KEY", "hunter2 x"),
            ("API_KEY", "ключ-hunter2"),
        ],
    )
    def test_what_cannot_be_used_is_named_and_not_shown(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str
    ) -> None:
        """A URL of another kind and a key that fits no header stop the command before anything is tried."""
        monkeypatch.setenv(f"MEMORYOS_{name}", value)
        result = _run("status")

        assert isinstance(result.exception, SettingsError)  # `main` writes it as a sentence
        assert str(result.exception).startswith(f"MEMORYOS_{name}: ")
        assert "hunter2" not in str(result.exception)


class TestInterrupted:
    def test_ctrl_c_leaves_no_traceback(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Whenever it comes, the command ends with a word and the status shells expect."""

        def interrupted() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("memoryos_pipeline.cli.main.app", interrupted)
        with pytest.raises(SystemExit) as ended:
            main()

        assert ended.value.code == 130
        assert capsys.readouterr().err == "memoryos: stopped\n"
