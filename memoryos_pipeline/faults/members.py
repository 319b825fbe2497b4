"""One process of a cluster: killed, frozen, stopped and started again by a test, never by itself."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryos_pipeline.embedded.plan import memoryos_command
from memoryos_pipeline.embedded.process import kill_session, start_program

POLL_SECONDS = 0.05
STOP_SECONDS = 40.0
READY_SECONDS = 120.0


def wait_until(claim: Callable[[], object], *, seconds: float) -> bool:
    """Look until a claim holds; tell whether it did in time."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


@dataclass
class Member:
    """`memoryos WORDS` in a session of its own. What it writes goes to `log`, all its lives into one file."""

    name: str
    words: tuple[str, ...]
    log: Path
    environment: dict[str, str]
    is_ready: Callable[["Member"], bool] = lambda _: True
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    starts: int = field(default=0, init=False)
    is_wanted: bool = field(default=False, init=False)
    """Whether the cluster starts it again when it has died."""

    def start(self, **environment: str) -> "Member":
        """Start it now, with these variables on top in this life only."""
        command = [*memoryos_command(), *self.words]
        self.process = start_program(command, log=self.log, environment={**self.environment, **environment})
        self.starts, self.is_wanted = self.starts + 1, True
        return self

    def ready(self, seconds: float = READY_SECONDS) -> "Member":
        """Return once it does its work. Raises TimeoutError with what it wrote."""
        if not wait_until(lambda: not self.is_running or self.is_ready(self), seconds=seconds) or not self.is_running:
            raise TimeoutError(f"{self.name} did not start: {self.written()[-2000:]}")
        return self

    @property
    def is_running(self) -> bool:
        """Whether its process lives (a frozen one does)."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """Its process. Raises ProcessLookupError before the first start."""
        if self.process is None:
            raise ProcessLookupError(self.name)
        return self.process.pid

    def kill(self, *, for_good: bool = False) -> None:
        """SIGKILL to its whole session; returns when it is gone. For good: the cluster does not start it again."""
        self.is_wanted = self.is_wanted and not for_good
        if self.process is not None:
            kill_session(self.process)

    def freeze(self) -> None:
        """SIGSTOP to its whole session: it holds what it holds, and does nothing."""
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        os.killpg(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: ask it to end by itself, and return at once; the cluster does not start it again."""
        self.is_wanted = False
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Return its exit code (minus the signal that ended it). Raises subprocess.TimeoutExpired."""
        if self.process is None:
            raise ProcessLookupError(self.name)
        return self.process.wait(seconds)

    def restart(self, **environment: str) -> "Member":
        """Kill it if it lives, and start it again."""
        self.kill()
        return self.start(**environment)

    def written(self) -> str:
        """Return everything it wrote so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""


def our_environment(inherited: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return what was inherited without anything of ours or of a provider, and `ours` as MEMORYOS_ variables."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(("MEMORYOS_", "ANTHROPIC_"))}
    return kept | {f"MEMORYOS_{name.upper()}": value for name, value in ours.items()}
