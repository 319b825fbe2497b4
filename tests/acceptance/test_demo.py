"""`memoryos demo`: the whole product in one command, and nothing left of it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from memoryos_pipeline.sample import sample_questions, sample_turns
from tests.acceptance.running import alive, wait_until

COMMAND = [sys.executable, "-m", "memoryos_pipeline", "demo", "--json"]
KEYS = [
    "turns", "pages", "segments", "knowledge", "links", "profile_traits", "lost", "doubled", "violations",
    "questions", "seconds", "pss_mb",
]  # fmt: skip


def _places() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("memoryos-demo-*"))


class TestDemo:
    def test_it_keeps_every_promise_and_ends_with_one_line(self) -> None:
        """Months go in and become every tier; nothing is lost, doubled or broken; every question has a score."""
        before = _places()
        # The coarse embedder makes this quick; what the real one finds is printed by `make demo`.
        environment = {**os.environ, "MEMORYOS_EMBEDDER": "hashing"}
        done = subprocess.run(COMMAND, env=environment, capture_output=True, check=False, text=True)

        assert done.returncode == 0, done.stderr
        line = json.loads(done.stdout)
        assert list(line) == KEYS
        assert (line["turns"], line["lost"], line["doubled"], line["violations"]) == (len(sample_turns()), 0, 0, 0)
        # Links need nearness that the coarse embedder does not see.
        assert [tier for tier in ("pages", "segments", "knowledge", "profile_traits") if not line[tier]] == []
        assert [set(each) for each in line["questions"]] == [{"question", "hit", "bm25_hit"}] * len(sample_questions())
        assert 0 < line["pss_mb"] < 1500
        assert _places() == before

    def test_ctrl_c_leaves_nothing(self) -> None:
        """Stopped in the middle it takes its processes and its directory along."""
        before = _places()
        process = subprocess.Popen(
            COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        me = psutil.Process(process.pid)
        assert wait_until(lambda: len(me.children(recursive=True)) > 5, seconds=60)
        family = me.children(recursive=True)
        process.send_signal(signal.SIGINT)

        assert process.wait(30) == 1
        assert alive(family) == []
        assert _places() == before
