"""The suite has teeth: each safeguard is taken out by itself, and the tests that guard it must go red.

    python -m tests.faults.mutants            a table, and an exit status
    python -m tests.faults.mutants --json     the same for programs

Nothing of this lives in the product: `tests.faults.mutants_plugin` patches what a test process has imported, or
changes the schema of the databases it makes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.faults.mutants_table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
AT_A_TIME = 2
LONGEST_SECONDS = 900
LOCK_TIMEOUT = "-c lock_timeout=10s"
"""Without a safeguard a test may wait for ever; then it fails instead."""


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant: which tests of those that guard it went red."""

    name: str
    safeguard: str
    caught: bool
    killed_by: tuple[str, ...]
    tests: int
    seconds: float
    trouble: str = ""


def run_tests(tests: Sequence[str], *, mutant: str = "") -> tuple[int, list[str], str]:
    """Run tests, with one safeguard taken out; return pytest's status, the tests that failed, and its last lines."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "failed.json"
        environment = {
            **os.environ,
            "MEMORYOS_MUTANT": mutant,
            "MEMORYOS_MUTANT_REPORT": str(report),
            "PGOPTIONS": LOCK_TIMEOUT,
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.faults.mutants_plugin",
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        try:
            ended = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return -1, [], f"no end after {LONGEST_SECONDS} s"
        failed = json.loads(report.read_text()) if report.exists() else []
        return ended.returncode, failed, "\n".join((ended.stdout + ended.stderr).splitlines()[-20:])


def judge(mutant: Mutant) -> Verdict:
    """Run the tests that guard a safeguard without it."""
    begun = time.monotonic()
    _, failed, said = run_tests(mutant.killers, mutant=mutant.name)
    caught = bool(failed)
    return Verdict(
        mutant.name,
        mutant.safeguard,
        caught,
        tuple(failed),
        len(mutant.killers),
        round(time.monotonic() - begun, 1),
        "" if caught else said,
    )


def judge_aloud(mutant: Mutant) -> Verdict:
    """Judge a mutant and say so at once, beside the result."""
    verdict = judge(mutant)
    said = "caught" if verdict.caught else "NOT caught"
    Console(stderr=True).print(f"{verdict.name}: {said} in {verdict.seconds} s", markup=False)
    return verdict


def main(arguments: Sequence[str]) -> int:
    """Judge all mutants, or those that are named; return 0 when each is caught and the tests are green without any."""
    named = {each for each in arguments if not each.startswith("-")}
    chosen = [mutant for mutant in MUTANTS if not named or mutant.name in named]
    guards = sorted({test for mutant in chosen for test in mutant.killers})
    status, failed, said = run_tests(guards)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        verdicts = list(pool.map(judge_aloud, chosen))
    survived = [verdict.name for verdict in verdicts if not verdict.caught]
    summary = {
        "unmutated": {"green": status == 0, "failed": failed, "said": "" if status == 0 else said},
        "mutants": [asdict(verdict) for verdict in verdicts],
        "caught": len(verdicts) - len(survived),
        "survived": survived,
    }
    console = Console()
    if "--json" in arguments:
        console.print_json(json.dumps(summary))
    else:
        _show(console, verdicts, green=status == 0, said=said)
    return 0 if status == 0 and not survived else 1


def _show(console: Console, verdicts: Sequence[Verdict], *, green: bool, said: str) -> None:
    table = Table("mutant", "what is taken out", "caught", "red", "seconds", title="Safeguards, one at a time")
    for verdict in verdicts:
        table.add_row(
            verdict.name,
            verdict.safeguard,
            "yes" if verdict.caught else "NO",
            f"{len(verdict.killed_by)}",
            f"{verdict.seconds}",
        )
    console.print(table)
    for verdict in verdicts:
        if verdict.trouble:
            console.print(f"{verdict.name} was not caught:\n{verdict.trouble}", markup=False)
    caught = sum(verdict.caught for verdict in verdicts)
    console.print(
        f"{caught} of {len(verdicts)} mutants caught; without any, the tests are {'green' if green else 'RED'}."
    )
    if not green:
        console.print(said, markup=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
