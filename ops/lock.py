"""Writes requirements.lock (what runs, with the embedded extra) and requirements-dev.lock (what checks it).

Names and versions only: where packages come from is a matter of the machine.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
OWN = "memoryos-pipeline"


def closure(roots: list[str]) -> dict[str, str]:
    """Return the installed version of every package the roots need, themselves included."""
    found: dict[str, str] = {}
    waiting = [Requirement(root) for root in roots]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = (normalized(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            package = distribution(requirement.name)
        except PackageNotFoundError:
            continue
        found[key[0]] = package.version
        for line in package.requires or []:
            needed = Requirement(line)
            environments = [{"extra": extra} for extra in ("", *requirement.extras)]
            if needed.marker is None or any(needed.marker.evaluate(each) for each in environments):
                waiting.append(needed)
    return found


def normalized(name: str) -> str:
    """Return a package's name the way indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write(path: Path, pins: dict[str, str], *, title: str) -> None:
    """Write pins, sorted, below a title."""
    lines = [f"# {title} Written by `make lock`.", *(f"{name}=={version}" for name, version in sorted(pins.items()))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def lock() -> None:
    """Write both lock files from what is installed beside this interpreter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = closure([*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["embedded"]])
    checking = closure(project["dependency-groups"]["dev"])
    write(ROOT / "requirements.lock", runtime, title="What memoryos-pipeline[embedded] runs on.")
    only_checking = {name: version for name, version in checking.items() if name not in runtime}
    write(ROOT / "requirements-dev.lock", only_checking, title="What checks it, beside requirements.lock.")


if __name__ == "__main__":
    lock()
