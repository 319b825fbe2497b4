"""Whole systems under test: `memoryos up` as a process, as us or as another account, and everything below it."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from memoryos_pipeline.embedded.directory import Connection, DataDirectory
from memoryos_pipeline.embedded.programs import account_can

STOP_SECONDS = 15.0


@dataclass
class System:
    """One `memoryos up`."""

    process: "subprocess.Popen[bytes]"
    directory: DataDirectory
    log: Path

    def wait_until_up(self, seconds: float = 60.0) -> Connection:
        """Return how to reach it; fails with what it wrote when it ends instead."""
        wait_until(lambda: self.directory.read_connection() or self.process.poll() is not None, seconds=seconds)
        connection = self.directory.read_connection()
        assert connection is not None, self.log.read_text()
        return connection

    def family(self) -> list[psutil.Process]:
        """Return every process below it, itself included."""
        me = psutil.Process(self.process.pid)
        return [me, *me.children(recursive=True)]

    def stop(self, how: signal.Signals = signal.SIGINT) -> float:
        """Stop it; return how many seconds that took."""
        begun = time.monotonic()
        self.process.send_signal(how)
        self.process.wait(STOP_SECONDS * 2)
        return time.monotonic() - begun


def ordinary_user() -> pwd.struct_passwd | None:
    """Return another, unprivileged account when we are root and it can run this very installation."""
    if os.geteuid() != 0 or not account_can('test -x "$0" && test -r "$0"', Path(sys.executable)):
        return None
    return pwd.getpwnam("nobody")


@contextmanager
def place_for(user: pwd.struct_passwd | None) -> Iterator[Path]:
    """Make a directory an account owns, short enough for anything, and remove it afterwards."""
    place = Path(tempfile.mkdtemp(prefix="mem-test-up-"))
    place.chmod(0o711)
    if user:
        os.chown(place, user.pw_uid, user.pw_gid)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def up(place: Path, user: pwd.struct_passwd | None = None, **settings: str) -> Iterator[System]:
    """Start a system in `place`; whatever is left of it at the end is killed."""
    log = place / "up.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYOS_")}
    environment |= {f"MEMORYOS_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "memoryos_pipeline", "up", "--data-dir", str(place / "data")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd="/",
            env={**environment, "MEMORYOS_EMBEDDER": "hashing", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    system = System(process, DataDirectory(place / "data"), log)
    try:
        yield system
    finally:
        if process.poll() is None:
            family = system.family()
            system.stop(signal.SIGTERM)
            leave(family)


def leave(family: list[psutil.Process]) -> None:
    """Kill what is left of a family."""
    for process in alive(family):
        process.kill()


def alive(family: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that still run."""
    return [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def wait_until(claim: Callable[[], object], *, seconds: float) -> bool:
    """Look until a claim holds; tell whether it did in time."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True
