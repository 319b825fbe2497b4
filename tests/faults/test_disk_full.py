"""The disk of Postgres is full, data and log alike: no turn is acknowledged that is not there, and room mends it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.embedded.first_run import ensure_schema
from memoryos_pipeline.embedded.postgres import EmbeddedPostgres
from memoryos_pipeline.readmodels.invariants import JournalEntry, compare_journal, find_violations
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import create_tenant

DISK_MEBIBYTES = 256
LEFT_MEBIBYTES = 24
SMALL_LOG = {"min_wal_size": "32MB", "max_wal_size": "32MB", "shared_buffers": "16MB"}
BATCH = 8
CONTENT_CHARACTERS = 30_000
MOST_BATCHES = 500
PAGE = 1 << 20


@dataclass
class Disk:
    """A small disk with a ballast on it that can be thrown off."""

    root: Path

    def fill(self, *, left_mebibytes: int) -> None:
        """Leave so much and no more."""
        ballast = shutil.disk_usage(self.root).free // PAGE - left_mebibytes
        with (self.root / "ballast").open("wb") as file:
            for _ in range(ballast):
                file.write(os.urandom(PAGE))

    def make_room(self) -> None:
        """Throw the ballast off."""
        (self.root / "ballast").unlink()


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk of memory; only root may mount one."""
    root = Path(tempfile.mkdtemp(prefix="mem-test-disk-"))
    options = f"size={DISK_MEBIBYTES}m,mode=755"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(root)], capture_output=True, check=False
    )
    if mounted.returncode:
        root.rmdir()
        pytest.skip("a disk of a small size can only be mounted by root")
    try:
        yield Disk(root)
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)
        root.rmdir()


@pytest.fixture
def server(disk: Disk) -> Iterator[EmbeddedPostgres]:
    """A Postgres on the small disk, with the schema in it."""
    server = EmbeddedPostgres(disk.root / "postgres", settings=SMALL_LOG)
    try:
        server.start()
        server.create_database("memoryos")
        ensure_schema(server.url("owner"))
        yield server
    finally:
        server.stop()


class Writer:
    """Sends batches to one conversation and keeps what became of each turn."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.app = Database(server.url("app"), pool_size=2, ping=True)
        self.tenant_id: UUID = mint_id()
        self.journal: dict[str, JournalEntry] = {}
        owner = Database(server.url("owner"), pool_size=1)
        create_tenant(owner, self.tenant_id, "disk")
        owner.dispose()

    def send(self, batch: int) -> bool:
        """Send a batch; tell whether it was acknowledged. One that was not may be there or not."""
        bodies = [_body(batch * BATCH + n) for n in range(BATCH)]
        turns = [parse_turn(body) for body in bodies]
        for turn in turns:
            name = turn.client_turn_id
            self.journal.setdefault(name, JournalEntry("maya", "companion", "long", name, None))
        try:
            receipts = record_turns(self.app, self.tenant_id, turns, policy=DEFAULT, max_attempts=5)
        except DBAPIError:
            return False
        for turn, receipt in zip(turns, receipts, strict=True):
            self.journal[turn.client_turn_id] = replace(self.journal[turn.client_turn_id], seq=receipt.seq)
        return True


def _body(n: int) -> dict[str, object]:
    return {
        "user_id": "maya", "agent_id": "companion", "conversation_id": "long", "client_turn_id": f"turn-{n}",
        "role": "user", "content": os.urandom(CONTENT_CHARACTERS // 2).hex(),
        "occurred_at": f"2026-03-01T09:{n // 60 % 60:02}:{n % 60:02}+00:00",
    }  # fmt: skip


@pytest.mark.slow
class TestFullDisk:
    def test_nothing_acknowledged_is_lost(self, disk: Disk, server: EmbeddedPostgres) -> None:
        """Recording fails while there is no room, and goes on once there is; what was told is there, once, in order."""
        writer = Writer(server)
        assert writer.send(0)
        disk.fill(left_mebibytes=LEFT_MEBIBYTES)
        refused = next((batch for batch in range(1, MOST_BATCHES) if not writer.send(batch)), None)
        assert refused is not None, "the disk was never full"

        disk.make_room()
        if server.process is not None and server.process.poll() is not None:
            server.start()  # it had ended itself: it could not write its log
        assert any(writer.send(batch) for batch in (refused + 1 + n % 3 for n in range(30)))

        with writer.app.transaction(writer.tenant_id) as connection:
            compared = compare_journal(connection, writer.tenant_id, list(writer.journal.values()))
            assert (compared.lost, compared.doubled, compared.unexpected) == ((), (), ())
            assert find_violations(connection, writer.tenant_id) == []
        writer.app.dispose()
