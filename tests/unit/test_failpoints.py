"""Named points: off without a word in the environment, exact when asked for."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryos_pipeline.failpoints import Failpoint, parse_failpoints

PROGRAM = """
from memoryos_pipeline.failpoints import reach
for kind in ("embed", "merge", "merge"):
    reach("after_claim", kind, work_id=7)
    print(kind, flush=True)
"""


def _run(written: str, directory: Path | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "MEMORYOS_FAILPOINTS": written}
    if directory:
        environment["MEMORYOS_FAILPOINTS_DIRECTORY"] = str(directory)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class TestParse:
    def test_entries_name_point_kind_and_time(self) -> None:
        """What is left out stands for every kind, and for the first time."""
        assert parse_failpoints("a=kill, b:merge:2=raise,c::*=stop") == (
            Failpoint("a", "", 1, "kill"),
            Failpoint("b", "merge", 2, "raise"),
            Failpoint("c", "", 0, "stop"),
        )

    @pytest.mark.parametrize("written", ["a", "a=explode", "=kill", "a:b:x=kill"])
    def test_nonsense_is_named(self, written: str) -> None:
        """A typo does not pass as a quiet run."""
        with pytest.raises(ValueError, match="actions: kill, exit"):
            parse_failpoints(written)


class TestReach:
    def test_nothing_happens_unless_asked_for(self) -> None:
        """An empty environment leaves every point off."""
        process = _run("")

        assert process.communicate()[0].split() == ["embed", "merge", "merge"]

    @pytest.mark.parametrize(("action", "code"), [("kill", -signal.SIGKILL), ("exit", 137), ("raise", 1)])
    def test_the_process_ends_at_that_kind_and_time(self, action: str, code: int) -> None:
        """The second time of one kind is the second time, whatever other kinds pass by."""
        process = _run(f"after_claim:merge:2={action}")

        assert process.communicate()[0].split() == ["embed", "merge"]
        assert process.returncode == code

    def test_an_entry_fires_once_in_a_directory(self, tmp_path: Path) -> None:
        """A process that is started again passes where its predecessor died, and the note tells who that was."""
        dead, alive = (_run("after_claim:embed=kill", tmp_path) for _ in range(2))
        codes = sorted(process.wait(30) for process in (dead, alive))
        for process in (dead, alive):
            process.communicate()

        assert codes == [-signal.SIGKILL, 0]
        assert '"work_id": 7' in (tmp_path / "after_claim.embed.fired").read_text()

    def test_a_paused_process_goes_on_when_told(self, tmp_path: Path) -> None:
        """It stands at its point until somebody opens the fifo."""
        fifo = tmp_path / "after_claim.merge.go"
        os.mkfifo(fifo)
        process = _run("after_claim:merge=pause", tmp_path)
        with fifo.open("wb"):
            assert (tmp_path / "after_claim.merge.fired").exists()

        assert process.communicate()[0].split() == ["embed", "merge", "merge"]
