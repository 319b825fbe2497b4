"""The broker is a doorbell: it neither waits nor tries again for us, since whatever it holds it may hand out twice."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMERS = {"countdown", "eta", "retry_backoff", "autoretry_for", "reject_on_worker_lost", "link", "link_error"}
SENDERS = {"retry", "chord", "chain", "group", "apply_async_on_commit"}


def _uses(path: Path) -> Iterator[str]:
    """Yield every word by which Celery would be asked to wait, to try again, or to go on by itself."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield from (f"{path.name}: {word.arg}" for word in node.keywords if word.arg in TIMERS)
            if isinstance(node.func, ast.Attribute) and node.func.attr in SENDERS:
                yield f"{path.name}: {node.func.attr}"


class TestDoorbell:
    def test_waiting_and_trying_again_are_rows(self) -> None:
        """No countdown, no retry of the broker's, no chain: what is to be done later stands in Postgres."""
        files = [*(ROOT / "workers").rglob("*.py"), *(ROOT / "memoryos_pipeline" / "client").rglob("*.py")]
        assert len(files) > 15
        assert [use for path in files for use in _uses(path)] == []
