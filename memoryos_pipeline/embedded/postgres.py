"""Embedded Postgres: the wheel's own `initdb` and `postgres`, run by us in a private directory."""

import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from memoryos_pipeline.embedded.process import (
    EmbeddedServerError,
    free_port,
    own_directory,
    start_server,
    stop_server,
    tail,
    write_private,
)
from memoryos_pipeline.embedded.programs import postgres_programs, require_reachable

START_SECONDS = 30.0
STOP_SECONDS = 6.0
PORT_TRIES = 5
SOCKET_PREFIX = "mem-pg-"
LONGEST_SOCKET_DIRECTORY = 85
"""Bytes; the name of a socket in it must fit into 107."""
ROLES = ("owner", "app", "ledger")
ROLE_SETTINGS = {
    "memoryos_app": {
        "statement_timeout": "60s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "60s",
    },
    "memoryos_ledger": {
        "statement_timeout": "30s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "30s",
    },
    "memoryos_reader": {"statement_timeout": "30s"},
}
"""The same bounds as ops/postgres/roles.sql; a test compares the two."""


@dataclass(frozen=True)
class PostgresPaths:
    """Where one embedded cluster lives."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def log(self) -> Path:
        return self.root / "postgres.log"

    @property
    def password_file(self) -> Path:
        return self.root / "passwords"


class EmbeddedPostgres:
    """One cluster on a loopback port, with the product's roles. `start` returns once it answers."""

    def __init__(self, root: Path, *, settings: dict[str, str] | None = None) -> None:
        self.paths = PostgresPaths(root)
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = settings or {}
        self._sockets: Path | None = None
        self._programs = Path()
        self._passwords: dict[str, str] = {}

    def start(self) -> None:
        """Create the cluster when there is none, start it, make the roles. Raises EmbeddedServerError.

        A second start after `stop` or a crash keeps the port.
        """
        own_directory(self.paths.root)
        require_reachable(self.paths.root)
        self._programs = postgres_programs(self.paths.root)
        if not (self.paths.data / "PG_VERSION").exists():
            self._initialise()
        self._passwords = _read_passwords(self.paths.password_file)
        end_leftover(self.paths.data)
        self._sockets = self._sockets or _socket_directory(self.paths.root)
        self._start_on_a_port()
        try:
            self._make_roles()
        except psycopg.Error as error:
            raise EmbeddedServerError(f"postgres refused its roles: {error}") from error

    def stop(self) -> None:
        """Stop within seven seconds: fast shutdown, then kill."""
        if self.process:
            stop_server(self.process, how=signal.SIGINT, seconds=STOP_SECONDS)
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = None

    def url(self, role: str, database: str = "memoryos") -> str:
        """Return the URL of a role: `superuser`, `owner`, `app` or `ledger`."""
        name = "postgres" if role == "superuser" else f"memoryos_{role}"
        return f"postgresql://{name}:{self._passwords[role]}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, *, template: str | None = None) -> None:
        """Create a database owned by the owner role, with pgvector in it."""
        owned = sql.SQL("create database {} owner memoryos_owner").format(sql.Identifier(name))
        source = sql.SQL(" template {}").format(sql.Identifier(template)) if template else sql.SQL("")
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            connection.execute(owned + source)
        if not template:
            with psycopg.connect(self.url("superuser", name), autocommit=True) as connection:
                connection.execute("create extension if not exists vector")

    def drop_database(self, name: str) -> None:
        """Drop a database, ending whoever is connected."""
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def has_database(self, name: str) -> bool:
        """Tell whether a database of this name exists."""
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            found = connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
        return found is not None

    def _initialise(self) -> None:
        shutil.rmtree(self.paths.data, ignore_errors=True)  # what a killed initdb left
        passwords = {role: secrets.token_urlsafe(24) for role in ("superuser", *ROLES)}
        write_private(self.paths.password_file, "".join(f"{role} {word}\n" for role, word in passwords.items()))
        secret = self.paths.root / "initdb.secret"
        write_private(secret, passwords["superuser"])
        command = [
            str(self._programs / "initdb"), "-D", str(self.paths.data), "-U", "postgres", "-E", "UTF8",
            "--locale=C.UTF-8", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-instructions",
        ]  # fmt: skip
        process = start_server(command, log=self.paths.log, directory=self.paths.root)
        code = process.wait(START_SECONDS * 2)
        secret.unlink()
        if code != 0:
            shutil.rmtree(self.paths.data, ignore_errors=True)
            raise EmbeddedServerError(f"initdb ended with {code}: {tail(self.paths.log)}")

    def _start_on_a_port(self) -> None:
        kept = self.port != 0
        for _ in range(1 if kept else PORT_TRIES):
            self.port = self.port if kept else free_port()
            self.process = start_server(
                self._command(),
                log=self.paths.log,
                directory=self.paths.root,
                at_parents_death=signal.SIGINT,  # SIGTERM would wait for clients to leave by themselves
            )
            if self._answers():
                return
            if "Address already in use" not in tail(self.paths.log, lines=8):
                break
        raise EmbeddedServerError(f"postgres did not start: {tail(self.paths.log)}")

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._sockets),
            "max_connections": "100",
            "shared_buffers": "128MB",
            "timezone": "UTC",
            "log_min_error_statement": "panic",
            "log_parameter_max_length_on_error": "0",
            # Until tables are analyzed, foreign keys are checked by whatever index an empty table suggested: on a new
            # system that costs as much as all the rest of recording turns.
            "autovacuum_naptime": "2s",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self.paths.data), *options]

    def _answers(self) -> bool:
        assert self.process is not None  # noqa: S101 - set by start, for the type checker
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                psycopg.connect(self.url("superuser", "postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return self.process.poll() is None
        stop_server(self.process, how=signal.SIGINT, seconds=STOP_SECONDS)
        return False

    def _make_roles(self) -> None:
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            for role in ROLES:
                _ensure_role(connection, f"memoryos_{role}", password=self._passwords[role])
            _ensure_role(connection, "memoryos_reader", password=None)


def end_leftover(data: Path) -> None:
    """End a server that outlived a killed supervisor, or forget one that is gone. Callers hold the directory."""
    note = data / "postmaster.pid"
    if not note.exists():
        return
    lines = note.read_text(encoding="utf-8").splitlines()
    server = _server_of(data, int(lines[0])) if lines else None
    if server:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            server.kill()
            server.wait(STOP_SECONDS)
    note.unlink(missing_ok=True)
    sockets = Path(lines[4]) if len(lines) > 4 else None
    if sockets and sockets.name.startswith(SOCKET_PREFIX):
        shutil.rmtree(sockets, ignore_errors=True)


def _server_of(data: Path, pid: int) -> psutil.Process | None:
    """Return the running server of this data directory; the same pid may long belong to somebody else."""
    try:
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE and str(data) in process.cmdline():
            return process
    except psutil.NoSuchProcess:
        pass
    return None


def _socket_directory(root: Path) -> Path:
    # A socket path may have 107 bytes, a data directory any length.
    inside = root / "sockets"
    fits = len(str(inside).encode()) <= LONGEST_SOCKET_DIRECTORY
    sockets = inside if fits else Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir="/tmp"))  # short
    own_directory(sockets)
    return sockets


def _ensure_role(connection: psycopg.Connection[tuple[object, ...]], name: str, *, password: str | None) -> None:
    if connection.execute("select 1 from pg_roles where rolname = %s", [name]).fetchone():
        return
    identifier = sql.Identifier(name)
    login = sql.SQL("login password {}").format(sql.Literal(password)) if password else sql.SQL("nologin")
    with connection.transaction():
        connection.execute(sql.SQL("create role {} nosuperuser nobypassrls {}").format(identifier, login))
        for setting, value in ROLE_SETTINGS.get(name, {}).items():
            connection.execute(sql.SQL("alter role {} set {} = {}").format(identifier, sql.Identifier(setting), value))


def _read_passwords(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)
