"""The bench of the ledger counts what the workers' own envelope did, and nothing else."""

from memoryos_pipeline.cli.bench_ledger import BATCHED, _run
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.tenants import create_tenant
from tests.conftest import Stack


class TestRun:
    def test_every_row_is_done_once_with_an_event(self, stack: Stack) -> None:
        """Two worker processes, two tenants: the ledger itself says how many rows were done."""
        other = mint_id()
        create_tenant(stack.owner, other, "other")
        result = _run(stack, stack.app, [stack.tenant_id, other], 40, BATCHED)  # type: ignore[arg-type]

        assert (result["rows"], result["events"]) == (80, 80)
        assert result["per_s"] > 0
