"""Named points in the code where the fault tests let a process die, fail or stand still. Off unless asked for.

`MEMORYOS_FAILPOINTS` names them, by comma: `point[:kind[:nth]]=action`. A point without a kind stands for every kind,
without a number for the first time it is reached; `*` as the number means every time. Actions:

`kill`   the process gets SIGKILL           `exit`   it ends at once with 137
`raise`  FailpointError is raised           `stop`   it stops (SIGSTOP) until somebody sends SIGCONT
`pause`  this thread waits until somebody opens the fifo `<name>.go` for writing

With `MEMORYOS_FAILPOINTS_DIRECTORY` each entry fires once among all processes that share the directory, and leaves
a file `<name>.fired` there with its process id and what it was told; `<name>` is the entry with dots for colons.
"""

import contextlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = "MEMORYOS_FAILPOINTS"
DIRECTORY = "MEMORYOS_FAILPOINTS_DIRECTORY"
KILLED = 137


class FailpointError(Exception):
    """A fault test asked for this failure."""


@dataclass(frozen=True, slots=True)
class Failpoint:
    """One entry: where it stands, which time it fires (0: every time), and what it does."""

    point: str
    kind: str
    nth: int
    action: str

    @property
    def name(self) -> str:
        """What its files are called."""
        return ".".join(part for part in (self.point, self.kind, str(self.nth) if self.nth != 1 else "") if part)


def parse_failpoints(written: str) -> tuple[Failpoint, ...]:
    """Read entries as they stand in the environment. Raises ValueError with a sentence."""
    return tuple(_parse(entry.strip()) for entry in written.split(",") if entry.strip())


def _parse(entry: str) -> Failpoint:
    place, _, action = entry.partition("=")
    point, kind, nth = [*place.split(":"), "", ""][:3]
    if action not in _ACTIONS or not point or not (nth in {"", "*"} or nth.isdecimal()):
        raise ValueError(f"{ENVIRONMENT}: {entry!r} is not point[:kind[:nth]]=action; actions: {', '.join(_ACTIONS)}")
    return Failpoint(point, kind, 0 if nth == "*" else int(nth or 1), action)


def reach(point: str, kind: str = "", **told: object) -> None:
    """Stand at a named point of the code; `told` is noted when an entry fires here."""
    if _armed:
        _reach(point, kind, told)


def _reach(point: str, kind: str, told: Mapping[str, object]) -> None:
    for each in _armed:
        if each.point == point and each.kind in ("", kind) and _is_its_time(each):
            fire(each, told)


def _is_its_time(each: Failpoint) -> bool:
    with _lock:
        _reached[each] += 1
        return each.nth in (0, _reached[each])


def fire(each: Failpoint, told: Mapping[str, object]) -> None:
    """Do what an entry says, once among all processes that share a directory."""
    directory = os.environ.get(DIRECTORY)
    place = Path(directory) / each.name if directory else None
    if place is not None and not _note(place.with_name(f"{each.name}.fired"), told, again=each.nth == 0):
        return
    _ACTIONS[each.action](place)


def _note(file: Path, told: Mapping[str, object], *, again: bool) -> bool:
    """Write down that an entry fires; False when it did before, here or in another process."""
    whole = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
    whole.write_text(json.dumps({"pid": os.getpid(), **told}), encoding="utf-8")
    try:
        if again:
            whole.replace(file)
        else:
            os.link(whole, file)  # a reader never sees half a note, and one process alone makes it
    except FileExistsError:
        return False
    finally:
        whole.unlink(missing_ok=True)
    return True


def _kill(_: Path | None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit(_: Path | None) -> None:
    os._exit(KILLED)


def _raise(_: Path | None) -> None:
    raise FailpointError


def _stop(_: Path | None) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _pause(place: Path | None) -> None:
    if place is None:
        raise ValueError(f"{DIRECTORY} must be set to pause")
    fifo = place.with_name(f"{place.name}.go")
    with contextlib.suppress(FileExistsError):
        os.mkfifo(fifo)
    fifo.open("rb").close()


_ACTIONS: dict[str, Callable[[Path | None], None]] = {
    "kill": _kill,
    "exit": _exit,
    "raise": _raise,
    "stop": _stop,
    "pause": _pause,
}
_lock = threading.Lock()
_reached: Counter[Failpoint] = Counter()
_armed = parse_failpoints(os.environ.get(ENVIRONMENT, ""))
