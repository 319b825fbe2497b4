"""Embedded servers start wherever they are installed, share no port, and clean up after a killed run."""

import os
import re
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from memoryos_pipeline.embedded import postgres as postgres_module
from memoryos_pipeline.embedded import programs
from memoryos_pipeline.embedded.postgres import ROLE_SETTINGS, EmbeddedPostgres, end_leftover
from memoryos_pipeline.embedded.process import EmbeddedServerError, unprivileged_user
from memoryos_pipeline.embedded.valkey import EmbeddedValkey

ROLES_FILE = Path(__file__).parents[2] / "ops" / "postgres" / "roles.sql"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory the server's account can pass through."""
    root = Path(tempfile.mkdtemp(prefix="mem-test-embedded-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root)


class TestPostgres:
    def test_it_survives_being_killed(self, place: Path) -> None:
        """After kill -9, and with a leftover pid file, the next start continues with the same data and passwords."""
        server = EmbeddedPostgres(place / "pg")
        server.start()
        server.create_database("kept")
        assert server.process is not None
        os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()
        assert (server.paths.data / "postmaster.pid").exists()

        again = EmbeddedPostgres(place / "pg")
        again.start()
        try:
            assert again.has_database("kept")
            with psycopg.connect(again.url("superuser", "postgres")) as connection:
                assert connection.execute("show fsync").fetchone() == ("on",)
        finally:
            again.stop()
        assert not (place / "pg" / "sockets").exists()

    def test_a_server_that_outlived_its_supervisor_is_ended(self, place: Path) -> None:
        """An orphan on the same data gives way: two servers on one directory would destroy it."""
        orphan, server = EmbeddedPostgres(place / "pg"), EmbeddedPostgres(place / "pg")
        orphan.start()
        server.start()
        try:
            assert orphan.process is not None
            assert orphan.process.wait(5) == 0
            assert server.has_database("postgres")
        finally:
            server.stop()

    def test_a_pid_that_belongs_to_a_stranger_is_only_forgotten(self, place: Path) -> None:
        """Numbers of dead processes are given to others, who are left alone."""
        data = place / "data"
        data.mkdir()
        note = data / "postmaster.pid"
        note.write_text(f"{os.getpid()}\n{data}\n0\n1\n{place / 'elsewhere'}\n")

        end_leftover(data)

        assert not note.exists()

    def test_a_taken_port_is_exchanged(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, postgres: EmbeddedPostgres
    ) -> None:
        """Somebody may take the port between asking for it and using it."""
        offers = iter([postgres.port, _free_port()])
        monkeypatch.setattr(postgres_module, "free_port", lambda: next(offers))
        server = EmbeddedPostgres(place / "pg", settings={"fsync": "off"})
        server.start()
        server.stop()

        assert server.port != postgres.port

    def test_roles_are_those_of_the_roles_file(self) -> None:
        """Embedded roles have the bounds that ops/postgres/roles.sql gives to an existing cluster."""
        written: dict[str, dict[str, str]] = {}
        for role, name, value in re.findall(
            r"alter role (\w+)\s+set (\w+) = '(\w+)'", ROLES_FILE.read_text(encoding="utf-8")
        ):
            written.setdefault(role, {})[name] = value

        assert written == ROLE_SETTINGS


class TestValkey:
    def test_it_keeps_port_and_password(self, place: Path) -> None:
        """Whoever knows the broker's URL finds it again after a restart."""
        server = EmbeddedValkey(place / "valkey")
        server.start()
        url = server.url
        server.stop()
        server.start()
        server.stop()

        assert server.url == url


class TestPrograms:
    def test_programs_out_of_reach_are_copied(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Installed where the server's account cannot go, the servers run from the data directory."""
        real = programs.account_can
        monkeypatch.setattr(programs, "account_can", lambda test, path: str(place) in str(path) and real(test, path))
        server, broker = EmbeddedPostgres(place / "pg", settings={"fsync": "off"}), EmbeddedValkey(place / "valkey")
        server.start()
        broker.start()
        try:
            assert server.process is not None
            assert psutil.Process(server.process.pid).exe().startswith(str(place))
            server.create_database("vectors")
        finally:
            broker.stop()
            server.stop()

    def test_a_place_out_of_reach_is_named(self, tmp_path: Path) -> None:
        """As root a closed folder above the data directory is named, with what to do; a user reaches their own."""
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        if unprivileged_user() is None:
            programs.require_reachable(closed)
            return
        (closed / "data").mkdir()
        with pytest.raises(EmbeddedServerError, match=r"cannot enter .*; choose a data directory"):
            programs.require_reachable(closed / "data")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
