"""Embedded Valkey: the wheel's server, run by us with a password, in a private directory."""

import secrets
import signal
import subprocess
import time
from pathlib import Path

import redis

from memoryos_pipeline.embedded.process import (
    EmbeddedServerError,
    free_port,
    own_directory,
    start_server,
    stop_server,
    tail,
    write_private,
)
from memoryos_pipeline.embedded.programs import require_reachable, valkey_program

START_SECONDS = 15.0
STOP_SECONDS = 5.0
PORT_TRIES = 5


class EmbeddedValkey:
    """One Valkey on a loopback port. It is a doorbell: nothing is persisted, nothing is evicted."""

    def __init__(self, root: Path, *, port: int = 0) -> None:
        self.root = root
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The broker URL, password included."""
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    @property
    def log(self) -> Path:
        """What the server writes."""
        return self.root / "valkey.log"

    def start(self) -> None:
        """Start and return once it answers. A second start after `stop` or a crash keeps port and password."""
        own_directory(self.root)
        require_reachable(self.root)
        program = valkey_program(self.root)
        kept = self.port != 0
        for _ in range(1 if kept else PORT_TRIES):
            self.port = self.port if kept else free_port()
            configuration = self.root / "valkey.conf"
            write_private(configuration, self._configuration())
            self.process = start_server([str(program), str(configuration)], log=self.log, directory=self.root)
            if self._answers():
                return
            if "already in use" not in tail(self.log, lines=8):
                break
        raise EmbeddedServerError(f"valkey did not start: {tail(self.log)}")

    def stop(self) -> None:
        """Stop within five seconds."""
        if self.process:
            stop_server(self.process, how=signal.SIGTERM, seconds=STOP_SECONDS)

    def _configuration(self) -> str:
        return (
            f"bind 127.0.0.1\nport {self.port}\ndir \"{self.root}\"\nrequirepass {self._password}\n"
            "maxmemory 128mb\nmaxmemory-policy noeviction\nsave \"\"\nappendonly no\n"
        )  # fmt: skip

    def _answers(self) -> bool:
        assert self.process is not None  # noqa: S101 - set by start, for the type checker
        deadline = time.monotonic() + START_SECONDS
        with redis.Redis.from_url(self.url, socket_timeout=2, retry=None) as client:
            while time.monotonic() < deadline and self.process.poll() is None:
                try:
                    client.ping()
                except redis.RedisError:
                    time.sleep(0.02)
                else:
                    return self.process.poll() is None
        stop_server(self.process, how=signal.SIGTERM, seconds=STOP_SECONDS)
        return False
