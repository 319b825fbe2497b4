"""`memoryos bench ingest` measures a real API process against a real Postgres."""

import json

import pytest
from typer.testing import CliRunner

from memoryos_pipeline.cli.bench import bench


class TestIngest:
    @pytest.mark.slow
    def test_it_reports_both_sides(self) -> None:
        """One JSON object: two ratios, and turns a second with p50 and p99 of each side, all positive."""
        result = CliRunner().invoke(bench, ["ingest", "--json", "--seconds", "0.5", "--rounds", "1"])

        assert result.exit_code == 0, result.output
        figures = json.loads(result.stdout)
        assert {"single_ratio", "batch_ratio"} < set(figures)
        assert set(figures) - {"single_ratio", "batch_ratio"} == {
            f"{size}_{side}_{name}"
            for size in ("single", "batch")
            for side in ("http", "sql")
            for name in ("turns_per_second", "p50_ms", "p99_ms")
        }
        assert all(value > 0 for value in figures.values())
        assert figures["single_ratio"] > 0.1
        assert figures["batch_ratio"] > 0.2
