"""Keeping children alive: started, watched, started again with a growing pause, stopped together."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryos_pipeline.embedded.process import EmbeddedServerError, kill_session

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A child that ran this long starts over with the first pause."""

Start = Callable[[], subprocess.Popen[bytes]]


@dataclass
class Child:
    """One process that is to be running, and how it is started."""

    name: str
    begin: Start
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started_at: float = 0.0
    due_at: float | None = None

    def start(self) -> None:
        """Start it now. Raises whatever starting it raises."""
        self.process = self.begin()
        self.started_at, self.due_at = time.monotonic(), None

    @property
    def pid(self) -> int | None:
        """The running process, None when there is none."""
        return self.process.pid if self.process and self.process.poll() is None else None

    def tend(self) -> str | None:
        """Look once: note a death, start again when its pause is over. Returns a sentence when it died."""
        if self.due_at is not None:
            if time.monotonic() >= self.due_at:
                self._start_again()
            return None
        if self.process is None or self.process.poll() is None:
            return None
        code = self.process.returncode
        kill_session(self.process)
        return f"{self.name} ended with {code}; starting it again in {self._plan():.1f} s"

    def ask_to_stop(self) -> None:
        """Send SIGTERM to a child that runs."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def _start_again(self) -> None:
        try:
            self.start()
        except (EmbeddedServerError, OSError):
            self._plan()

    def _plan(self) -> float:
        steady = time.monotonic() - self.started_at > STEADY_SECONDS
        self.failures = 0 if steady else self.failures
        pause = float(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**self.failures))
        self.failures += 1
        self.due_at = time.monotonic() + pause
        return pause


def stop_together(children: Sequence[Child], *, seconds: float) -> None:
    """Ask all of them at once, wait, and kill the sessions of those that stay."""
    deadline = time.monotonic() + seconds
    for child in children:
        child.ask_to_stop()
    for child in children:
        if child.process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.0, deadline - time.monotonic()))
            kill_session(child.process)
