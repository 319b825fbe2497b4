"""A system for one demonstration: `memoryos up` in a temporary directory, gone afterwards whatever happens."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memoryos_pipeline.embedded.directory import Connection, DataDirectory
from memoryos_pipeline.embedded.plan import memoryos_command
from memoryos_pipeline.embedded.process import EmbeddedServerError, start_program, stop_server, tail
from memoryos_pipeline.embedded.programs import require_reachable

START_SECONDS = 90.0
STOP_SECONDS = 20.0
LOOK_SECONDS = 0.1
NOT_INHERITED = (
    "DATABASE_URL", "LEDGER_URL", "OWNER_URL", "BROKER_URL", "API_URL", "API_KEY", "API_HOST", "DATA_DIR",
)  # fmt: skip
"""A demonstration never touches a system of yours."""


@contextmanager
def own_system() -> Iterator[tuple[Connection, Path]]:
    """Start a system and yield how to reach it and a directory for notes. Raises EmbeddedServerError."""
    place = _reachable_place()
    try:
        with _running(place) as connection:
            yield connection, place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def system_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the system: nothing of yours, any free ports, sweeps only when we ask for them."""
    hidden = {f"MEMORYOS_{name}" for name in NOT_INHERITED}
    kept = {name: value for name, value in inherited.items() if name not in hidden}
    kept.setdefault("MEMORYOS_LANGUAGE_MODEL", "extractive")
    return {**kept, "MEMORYOS_API_PORT": "0", "MEMORYOS_FLOWER_PORT": "0", "MEMORYOS_SWEEP_SECONDS": "86400"}


@contextmanager
def _running(place: Path) -> Iterator[Connection]:
    log, directory = place / "up.log", DataDirectory(place / "data")
    command = (*memoryos_command(), "up", "--data-dir", str(directory.root))
    process = start_program(command, log=log, environment=system_environment(os.environ))
    try:
        yield _wait_for_connection(process, directory, log)
    finally:
        stop_server(process, how=signal.SIGTERM, seconds=STOP_SECONDS)


def _wait_for_connection(process: "subprocess.Popen[bytes]", directory: DataDirectory, log: Path) -> Connection:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        connection = directory.read_connection()
        if connection:
            return connection
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        break
    raise EmbeddedServerError(f"the system did not come up: {tail(log)}")


def _reachable_place() -> Path:
    refusal: EmbeddedServerError | None = None
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):  # noqa: S108 - mkdtemp below
        place = Path(tempfile.mkdtemp(prefix="memoryos-demo-", dir=parent))
        place.chmod(0o711)  # servers started by root pass through it as another account
        try:
            require_reachable(place)
        except EmbeddedServerError as error:
            refusal = error
            place.rmdir()
        else:
            return place
    raise refusal or EmbeddedServerError("there is no temporary directory")
