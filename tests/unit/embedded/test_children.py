"""Children are started again with growing pauses, and stopped with everything below them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from memoryos_pipeline.embedded.children import FIRST_PAUSE_SECONDS, Child, stop_together
from memoryos_pipeline.embedded.process import start_program

SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")
DEAF_FAMILY = (
    sys.executable,
    "-c",
    "import signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(60)\n",
)


def _child(tmp_path: Path, command: tuple[str, ...]) -> Child:
    def begin() -> "subprocess.Popen[bytes]":
        return start_program(command, log=tmp_path / "log", environment={})

    return Child("sleeper", begin)


def _wait_until(claim: object, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


class TestTend:
    def test_a_dead_child_is_started_again_after_a_pause(self, tmp_path: Path) -> None:
        """Kill -9 is noticed, said once, and answered with a new process."""
        child = _child(tmp_path, SLEEPER)
        child.start()
        first = child.pid
        assert first is not None
        psutil.Process(first).kill()
        assert _wait_until(lambda: child.pid is None)

        said = [child.tend(), child.tend()]
        assert _wait_until(lambda: (child.tend(), child.pid)[1] is not None)

        assert said == [f"sleeper ended with -9; starting it again in {FIRST_PAUSE_SECONDS:.1f} s", None]
        assert child.pid != first
        stop_together([child], seconds=5)

    def test_pauses_grow(self, tmp_path: Path) -> None:
        """A child that keeps dying is not started in a tight loop."""
        child = _child(tmp_path, (sys.executable, "-c", "raise SystemExit(3)"))
        pauses = []
        for _ in range(3):
            child.start()
            assert child.process is not None
            child.process.wait()
            said = child.tend()
            assert said is not None
            pauses.append(float(said.split()[-2]))

        assert pauses == [0.5, 1.0, 2.0]


class TestStop:
    def test_a_deaf_child_goes_with_its_own_children(self, tmp_path: Path) -> None:
        """What ignores SIGTERM is killed in time, and nothing below it is left."""
        child = _child(tmp_path, DEAF_FAMILY)
        child.start()
        log = tmp_path / "log"
        assert _wait_until(lambda: log.exists() and log.read_text().strip())
        grandchild = psutil.Process(int(log.read_text()))

        begun = time.monotonic()
        stop_together([child], seconds=0.3)

        assert time.monotonic() - begun < 2
        assert child.pid is None
        assert _wait_until(lambda: not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE)

    def test_children_die_with_a_killed_parent(self, tmp_path: Path) -> None:
        """A supervisor that is killed -9 leaves nothing: the kernel tells its children."""
        parent = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys, time; from pathlib import Path\n"
                "from memoryos_pipeline.embedded.process import start_program\n"
                f"child = start_program({SLEEPER!r}, log=Path({str(tmp_path / 'log')!r}), environment={{}})\n"
                "print(child.pid, flush=True); time.sleep(60)",
            ],
            stdout=subprocess.PIPE,
        )
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.stdout.close()
        parent.send_signal(signal.SIGKILL)
        parent.wait()

        assert _wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
