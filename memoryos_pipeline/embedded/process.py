"""Running other people's servers as children: unprivileged, on free ports, gone when we are gone."""

import ctypes
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
UNPRIVILEGED = ("postgres", "nobody")


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
    return next(user for name in UNPRIVILEGED if (user := _account(name)))


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


def die_with_parent() -> Callable[[], None]:
    """Return a pre-exec hook: the child is stopped by the kernel when its parent dies."""
    libc = ctypes.CDLL(None)

    def hook() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    return hook


def start_server(command: Sequence[str], *, log: Path, directory: Path) -> subprocess.Popen[bytes]:
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
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - no thread is running yet when servers start
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def stop_server(process: subprocess.Popen[bytes], *, how: signal.Signals, seconds: float) -> None:
    """Ask a server to stop and wait; kill its whole session when it does not."""
    if process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
