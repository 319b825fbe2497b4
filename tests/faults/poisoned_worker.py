"""`memoryos worker` some of whose rows are poison: what stands behind the `!` of their subject is what they do.

With MEMORYOS_TEST_ANTIDOTE set they are done instead, as after a mended release.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

from memoryos_pipeline import pipeline
from memoryos_pipeline.cli.main import main
from memoryos_pipeline.domain.work import Lease, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.ledger import complete

MARK = "!"
ANTIDOTE = "MEMORYOS_TEST_ANTIDOTE"


def _raise() -> None:
    message = "poison"
    raise ValueError(message)


def _allocate() -> None:
    bytearray(1 << 62)


def _segfault() -> None:
    ctypes.string_at(0)


def _be_killed() -> None:
    """End as the kernel ends whoever takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def _hang() -> None:
    threading.Event().wait()


POISONS: dict[str, Callable[[], object]] = {
    "raise": _raise,
    "allocate": _allocate,
    "exit": lambda: sys.exit(3),
    "segfault": _segfault,
    "killed": _be_killed,
    "exit_at_once": lambda: os._exit(3),
    "hang": _hang,
}
HARMLESS = ("raise", "allocate")
"""After these the process goes on."""


def poisoned(stage: pipeline.Stage) -> pipeline.Stage:
    """Return a stage that does to its process what a poisoned row says."""

    def run(parts: Parts, lease: Lease) -> None:
        _, mark, poison = lease.subject_key.partition(MARK)
        if not mark:
            stage(parts, lease)
        elif os.environ.get(ANTIDOTE):
            with parts.database.transaction(lease.tenant_id) as connection:
                complete(connection, lease)
        else:
            POISONS[poison]()

    return run


if __name__ == "__main__":
    pipeline.STAGES[WorkKind.SUMMARIZE] = poisoned(pipeline.STAGES[WorkKind.SUMMARIZE])
    main()
