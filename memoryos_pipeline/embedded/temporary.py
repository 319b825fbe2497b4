"""A Postgres for one measurement: in a temporary directory, with the schema in it, gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryos_pipeline.embedded.first_run import ensure_schema
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres


@contextmanager
def temporary_postgres(*, settings: dict[str, str] | None = None) -> Iterator[EmbeddedPostgres]:
    """Run Postgres (fsync on, unless `settings` say otherwise) and yield it. Raises EmbeddedServerError."""
    root = Path(tempfile.mkdtemp(prefix="mem-bench-"))
    root.chmod(0o711)  # as root the server runs under another account, which passes through
    server = EmbeddedPostgres(root / "postgres", settings=settings)
    try:
        server.start()
        server.create_database("memoryos")
        ensure_schema(server.url("owner"))
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
