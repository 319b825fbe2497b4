"""`memoryos bench sweep` times the sweep's own function, and forgets what it says it forgets."""

import json

import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli.main import app


class TestSweep:
    @pytest.mark.slow
    def test_it_reports_both_costs(self) -> None:
        """One JSON object: what nothing due costs, what 1,000 due cost, each of them told in the event log."""
        result = CliRunner().invoke(app, ["bench", "sweep", "--items", "40000", "--json"])

        assert result.exit_code == 0, result.output
        figures = json.loads(result.stdout.splitlines()[-1])
        assert figures["events_written"] == 1_000
        assert (figures["items"], figures["memories_swept"]) == (40_000, 4)
        assert 0 < figures["due_0_ms"] < figures["due_1000_ms"]
