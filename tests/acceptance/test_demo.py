"""`memoryos demo`: the whole product in one command, and nothing left of it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memoryos_pipeline.sample import sample_questions, sample_turns
from tests.acceptance.running import alive, wait_until

COMMAND = [sys.executable, "-m", "memoryos_pipeline", "demo", "--json"]
KEYS = [
    "turns", "pages", "segments", "knowledge", "links", "profile_traits", "lost", "doubled", "violations",
    "questions", "seconds", "pss_mb",
]  # fmt: skip


@pytest.fixture
def place() -> Iterator[Path]:
    """A temporary directory of this test's own, which the servers' account can reach."""
    with tempfile.TemporaryDirectory(prefix="mem-test-demo-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def heard_interrupts() -> Iterator[None]:
    """Children hear Ctrl-C, also where the tests run in the background and their parent was told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestDemo:
    def test_it_keeps_every_promise_and_ends_with_one_line(self, place: Path) -> None:
        """Months go in and become every tier; nothing is lost, doubled or broken; every question finds its turn."""
        environment = {**os.environ, "TMPDIR": str(place)}
        done = subprocess.run(COMMAND, env=environment, capture_output=True, check=False, text=True)

        assert done.returncode == 0, done.stderr
        line = json.loads(done.stdout)
        assert list(line) == KEYS
        assert (line["turns"], line["lost"], line["doubled"], line["violations"]) == (len(sample_turns()), 0, 0, 0)
        assert [tier for tier in ("pages", "segments", "knowledge", "links", "profile_traits") if not line[tier]] == []
        assert [set(each) for each in line["questions"]] == [{"question", "hit", "bm25_hit"}] * len(sample_questions())
        assert [each["question"] for each in line["questions"] if not each["hit"]] == []
        assert 0 < line["pss_mb"] < 1500
        assert list(place.iterdir()) == []

    @pytest.mark.usefixtures("heard_interrupts")
    def test_ctrl_c_leaves_nothing(self, place: Path) -> None:
        """Stopped in the middle it takes its processes and its directory along."""
        process = subprocess.Popen(
            COMMAND,
            env={**os.environ, "TMPDIR": str(place)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        me = psutil.Process(process.pid)
        assert wait_until(lambda: len(me.children(recursive=True)) > 5, seconds=60)
        family = me.children(recursive=True)
        process.send_signal(signal.SIGINT)

        assert process.wait(30) == 1
        assert alive(family) == []
        assert list(place.iterdir()) == []
