"""A stop signal is heard, whatever Python was doing when it came."""

import subprocess
import sys

SWALLOWED = """
import signal, weakref
from memoryos_pipeline.embedded.supervisor import _end_like_ctrl_c

class Thing: ...

_end_like_ctrl_c()
thing = Thing()
watcher = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
del thing
try:
    signal.pause()
except KeyboardInterrupt:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("stopped")
"""


class TestEndLikeCtrlC:
    def test_a_signal_that_python_drops_is_heard_again(self) -> None:
        """What is raised in a weak reference's callback is dropped; the stop comes a moment later all the same."""
        ended = subprocess.run(
            [sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=30, check=True
        )

        assert "KeyboardInterrupt" in ended.stderr
        assert ended.stdout == "stopped\n"
