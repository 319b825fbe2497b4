"""How much memory a family of processes takes: the peak of their proportional sizes, added up."""

import threading
from types import TracebackType
from typing import Self

import psutil

SAMPLE_SECONDS = 1.0


class PeakMemory:
    """Samples this process and everything below it on a thread, from enter to exit."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, family_bytes())


def family_bytes() -> int:
    """Return the proportional set size of this process and all its descendants, in bytes."""
    me = psutil.Process()
    return sum(_bytes(process) for process in (me, *me.children(recursive=True)))


def _bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0  # it ended while we looked
