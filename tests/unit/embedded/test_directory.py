"""A data directory has one holder, keeps its secrets to itself, and says so when it cannot be used."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from memoryos_pipeline.embedded.directory import Connection, DataDirectory
from memoryos_pipeline.embedded.process import EmbeddedServerError

CONNECTION = Connection(
    api_url="http://127.0.0.1:1",
    api_key="mem_key",
    flower_url="http://127.0.0.1:2",
    flower_user="memoryos",
    flower_password="word",
    database_url="postgresql://a",
    ledger_url="postgresql://b",
    owner_url="postgresql://c",
    broker_url="redis://d",
    pid=1,
)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestHold:
    def test_a_second_holder_is_refused_with_a_sentence(self, tmp_path: Path) -> None:
        """Two systems on one directory would destroy each other's data."""
        directory = DataDirectory(tmp_path / "data")
        refused = pytest.raises(EmbeddedServerError, match=r"another memoryos .* --data-dir")
        with directory.held(), refused, directory.held():
            pass
        with directory.held():
            pass

    def test_an_existing_directory_keeps_its_mode(self, tmp_path: Path) -> None:
        """What somebody made for other purposes is used as it is."""
        root = tmp_path / "data"
        root.mkdir(mode=0o750)
        before = _mode(tmp_path)
        with DataDirectory(root).held():
            pass

        assert (_mode(root), _mode(tmp_path)) == (0o750, before)

    def test_a_place_that_is_no_directory_is_named(self, tmp_path: Path) -> None:
        """The message says which directory and how to choose another."""
        (tmp_path / "file").write_text("")
        directory = DataDirectory(tmp_path / "file" / "data")
        with pytest.raises(EmbeddedServerError, match=r"file/data .*--data-dir"), directory.held():
            pass


class TestSecrets:
    def test_secrets_are_kept_and_private(self, tmp_path: Path) -> None:
        """A generated password is the same at every start, and only its owner reads it."""
        directory = DataDirectory(tmp_path / "data")
        with directory.held():
            first = directory.secret("flower_password")

            assert len(first) >= 24
            assert directory.secret("flower_password") == first
            assert _mode(directory.root / "flower_password") == 0o600

    def test_the_connection_is_there_while_it_runs(self, tmp_path: Path) -> None:
        """connection.json appears whole and private, is replaced, and goes."""
        directory = DataDirectory(tmp_path / "data")
        with directory.held():
            assert directory.read_connection() is None
            directory.write_connection(CONNECTION)
            directory.write_connection(replace(CONNECTION, pid=2))

            assert directory.read_connection() == replace(CONNECTION, pid=2)
            assert _mode(directory.connection_file) == 0o600
            directory.forget_connection()
            assert directory.read_connection() is None

    def test_a_large_log_is_set_aside(self, tmp_path: Path) -> None:
        """Logs of a system that runs for months do not fill the disk."""
        directory = DataDirectory(tmp_path / "data")
        with directory.held():
            log = directory.log("api")
            with log.open("wb") as file:
                file.truncate(10_000_001)

            assert not directory.log("api").exists()
            assert log.with_suffix(".log.1").exists()
