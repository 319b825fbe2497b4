"""Running other people's servers as children: unprivileged, on free ports, gone when we are gone."""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
UNPRIVILEGED = ("postgres", "nobody")
LIBC = ctypes.CDLL(None)


class EmbeddedServerError(RuntimeError):
    """An embedded server cannot run; the message says what to do or ends with what the server wrote."""


def free_port() -> int:
    """Return a loopback TCP port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def unprivileged_user() -> pwd.struct_passwd | None:
    """Return the account servers run as when we are root, None when we are an ordinary user."""
    if os.geteuid() != 0:
        return None
    user = next((user for name in UNPRIVILEGED if (user := _account(name))), None)
    if user is None:
        raise EmbeddedServerError(f"running as root needs one of the accounts {' or '.join(UNPRIVILEGED)}")
    return user


def _account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def own_directory(path: Path) -> None:
    """Create `path` for the server's account alone (0700); folders that exist already are left as they are."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    user = unprivileged_user()
    if user:
        os.chown(path, user.pw_uid, user.pw_gid)


def write_private(path: Path, text: str) -> None:
    """Write a file that only the server's account (and root) can read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    user = unprivileged_user()
    if user:
        shutil.chown(path, user.pw_uid, user.pw_gid)


def child_hook(at_parents_death: signal.Signals) -> Callable[[], None]:
    """Return a pre-exec hook: no signal blocked, and the kernel sends `at_parents_death` when we die."""
    parent = os.getpid()

    def hook() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        LIBC.prctl(PR_SET_PDEATHSIG, int(at_parents_death))
        if os.getppid() != parent:  # we died before the kernel was asked to watch
            os._exit(1)

    return hook


def start_server(
    command: Sequence[str], *, log: Path, directory: Path, at_parents_death: signal.Signals = signal.SIGTERM
) -> subprocess.Popen[bytes]:
    """Start a server in its own session as the unprivileged account, its output going to `log`."""
    user = unprivileged_user()
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=child_hook(at_parents_death),  # noqa: PLW1509 - the supervisor runs no thread
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def start_program(command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start one of our own programs in its own session, as ourselves, its output appended to `log`.

    It stands in the directory of its log: celery imports from where it stands, which may be anybody's project.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=log.parent,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=child_hook(signal.SIGTERM),  # noqa: PLW1509 - the supervisor runs no thread
        )


def stop_server(process: subprocess.Popen[bytes], *, how: signal.Signals, seconds: float) -> None:
    """Ask a server to stop and wait; kill its whole session when it does not."""
    if process.poll() is None:
        process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    kill_session(process)


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the session a child was started in, and reap the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(log: Path, *, lines: int = 5) -> str:
    """Return the last lines of a log on one line, for an error message."""
    found = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return " / ".join(found[-lines:])
