"""The data directory of one embedded system: who holds it, where things lie in it, the secrets it keeps."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from memoryos_pipeline.embedded.process import EmbeddedServerError, unprivileged_user

LARGEST_LOG_BYTES = 10_000_000


@dataclass(frozen=True)
class Connection:
    """How to reach a running system; kept as connection.json (0600) in its data directory while it runs."""

    api_url: str
    api_key: str
    flower_url: str
    flower_user: str
    flower_password: str
    database_url: str
    ledger_url: str
    owner_url: str
    broker_url: str
    pid: int


@dataclass(frozen=True)
class DataDirectory:
    """One data directory. Everything embedded lives below `root`."""

    root: Path

    @property
    def connection_file(self) -> Path:
        return self.root / "connection.json"

    @property
    def key_file(self) -> Path:
        return self.root / "api_key"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Create the directory when needed and hold it alone. Raises EmbeddedServerError when another does."""
        self._create()
        with (self.root / "lock").open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EmbeddedServerError(self._held_by_another(lock.name)) from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield

    def log(self, name: str) -> Path:
        """Return where a child writes; one that grew large is set aside first."""
        log = self.root / "logs" / f"{name}.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log

    def secret(self, name: str) -> str:
        """Return a generated secret of this directory, the same at every start."""
        path = self.root / name
        if not path.exists():
            write_secret(path, secrets.token_urlsafe(24))
        return path.read_text(encoding="utf-8").strip()

    def write_connection(self, connection: Connection) -> None:
        """Say how this system is reached, until `forget_connection`."""
        write_secret(self.connection_file, json.dumps(asdict(connection), indent=2))

    def read_connection(self) -> Connection | None:
        """Return how the system here is reached, None when none is running."""
        try:
            return Connection(**json.loads(self.connection_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def forget_connection(self) -> None:
        """Say that nothing runs here any more."""
        self.connection_file.unlink(missing_ok=True)

    def _create(self) -> None:
        # As root the servers run under another account, which must be able to pass through to its own folders.
        mode = 0o711 if unprivileged_user() else 0o700
        try:
            if not self.root.exists():
                self.root.mkdir(parents=True)
                self.root.chmod(mode)
            (self.root / "logs").mkdir(exist_ok=True, mode=0o700)
            (self.root / "lock").touch(mode=0o600)
        except OSError as error:
            raise EmbeddedServerError(
                f"cannot write to the data directory {self.root} ({error.strerror}); "
                "choose another with --data-dir or MEMORYOS_DATA_DIR"
            ) from None

    def _held_by_another(self, lock: str) -> str:
        holder = Path(lock).read_text(encoding="utf-8").strip() or "unknown"
        return (
            f"another memoryos (process {holder}) is using the data directory {self.root}; "
            "stop it, or choose another directory with --data-dir"
        )


def write_secret(path: Path, text: str) -> None:
    """Write a file only we can read, whole or not at all."""
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    staging.unlink(missing_ok=True)
    with os.fdopen(os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    staging.replace(path)
