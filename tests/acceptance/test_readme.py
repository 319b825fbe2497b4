"""What the README says can be done is done: its own blocks, run as they stand against a running system."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.running import place_for, up

ROOT = Path(__file__).parents[2]
TOUR = "## Five minutes"
BLOCK = re.compile(r"^```(bash|python|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOUR_SECONDS = 90


def _blocks() -> list[tuple[str, str]]:
    """Return language and text of every block of the tour, in order."""
    tour = (ROOT / "README.md").read_text(encoding="utf-8").split(TOUR)[1].split("\n## ")[0]
    return BLOCK.findall(tour)


def _blocks_in(language: str) -> list[str]:
    return [block for found, block in _blocks() if found == language]


class Reader:
    """Somebody in a checkout, with nothing in the environment but where the data lies and which embedder it has."""

    def __init__(self, checkout: Path, data: Path) -> None:
        self._checkout = checkout
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYOS_")}
        # Named, so that a system of the reader's own is left alone.
        self._environment = {**kept, "MEMORYOS_DATA_DIR": str(data), "MEMORYOS_EMBEDDER": "hashing", "COLUMNS": "120"}
        (checkout / ".venv").symlink_to(sys.prefix)
        (checkout / "memoryos_pipeline").symlink_to(ROOT / "memoryos_pipeline")

    def run(self, *command: str, given: str) -> str:
        """Run a command with `given` on standard input; return what it printed."""
        done = subprocess.run(
            command,
            input=given,
            cwd=self._checkout,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TOUR_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{given}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with place_for(None) as place, up(place, api_port="0", flower_port="0") as system:
        system.wait_until_up()
        yield Reader(tmp_path_factory.mktemp("checkout"), system.directory.root)


@pytest.mark.slow
class TestTour:
    def test_the_shell_blocks_run_in_order(self, reader: Reader) -> None:
        """One shell, stopping at the first failure: what was published is found, counted and ingested."""
        said = reader.run("bash", "-euo", "pipefail", given="\n".join(_blocks_in("bash")))

        assert '"duplicate":false' in said.replace(" ", "")
        assert "Lisbon" in said
        assert "399" in said
        assert "콩이" in said
        assert "No invariant is broken." in said

    def test_the_python_blocks_run(self, reader: Reader) -> None:
        """The SDK connects by itself and reads back what it added."""
        for block in _blocks_in("python"):
            assert "自転車" in reader.run(sys.executable, "-", given=block)

    def test_the_sql_blocks_run(self, reader: Reader) -> None:
        """Every statement names views and columns that exist."""
        memoryos = str(Path(sys.executable).with_name("memoryos"))
        for block in _blocks_in("sql"):
            assert reader.run(memoryos, "sql", "--json", given=block).count('{"rows":') == block.count(";")

    def test_each_kind_of_block_is_there(self) -> None:
        """The README still shows all three ways."""
        assert {language for language, _ in _blocks()} == {"bash", "python", "sql"}
