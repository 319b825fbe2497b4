"""The API as a process: bounded heads and bodies, a graceful stop, and nothing secret in its output."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.readiness import responds
from memoryos_pipeline.store.erasure import subject_lock_key
from memoryos_pipeline.store.tenants import mint_key
from tests.conftest import Stack

CANARY = "c4n4ry"


@dataclass(frozen=True)
class Served:
    """A running API process, its key, and where it writes."""

    process: subprocess.Popen[bytes]
    port: int
    key: str
    output: Path

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def post(self, body: bytes, connection: socket.socket) -> None:
        head = f"POST /v1/turns HTTP/1.1\r\nhost: x\r\nx-api-key: {self.key}\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)


@pytest.fixture
def served(stack: Stack, tmp_path: Path) -> Iterator[Served]:
    """`memoryos api` on the stack's database."""
    port, output = free_port(), tmp_path / "api.log"
    environment = {
        **os.environ,
        "MEMORYOS_DATABASE_URL": stack.url("app"),
        "MEMORYOS_API_PORT": str(port),
        "MEMORYOS_EMBEDDER": "hashing",
        "MEMORYOS_LANGUAGE_MODEL": "extractive",
        "MEMORYOS_LOG_LEVEL": "debug",
    }
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "memoryos_pipeline", "api"], env=environment, stdout=log, stderr=log
        )
    deadline = time.monotonic() + 60
    while not responds(f"http://127.0.0.1:{port}/readyz"):
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline
    yield Served(process, port, mint_key(stack.owner, stack.tenant_id), output)
    process.kill()
    process.wait()


def _body(client_turn_id: str) -> bytes:
    turn = {
        "user_id": "maya", "conversation_id": "c1", "client_turn_id": client_turn_id, "role": "user",
        "content": CANARY, "occurred_at": "2026-05-04T18:02:00Z",
    }  # fmt: skip
    return json.dumps(turn).encode()


def _status(connection: socket.socket) -> int:
    received = b""
    while b"\r\n" not in received:
        data = connection.recv(65536)
        assert data, "the connection was closed without an answer"
        received += data
    return int(received.split(b" ", 2)[1])


class TestServe:
    def test_bounds_hold_on_the_wire(self, served: Served) -> None:
        """Endless heads, endless bodies and noise get a 4xx, at once and without growing the process."""
        before = psutil.Process(served.process.pid).memory_info().rss
        with served.connect() as connection:
            connection.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 70_000)
            assert _status(connection) == 431
        with served.connect() as connection:
            connection.sendall(b"POST /v1/turns HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(12):
                connection.sendall(b"100000\r\n" + b"a" * 0x100000 + b"\r\n")
            assert _status(connection) == 413
        with served.connect() as connection:
            connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            assert _status(connection) == 400
        with served.connect() as connection:
            started = time.monotonic()
            head = (
                f"POST /v1/turns HTTP/1.1\r\nhost: x\r\nx-api-key: {served.key}\r\ncontent-length: 1000000000\r\n\r\n"
            )
            connection.sendall(head.encode())
            assert _status(connection) == 413
            assert time.monotonic() - started < 1.0

        grown = psutil.Process(served.process.pid).memory_info().rss - before
        assert grown < 64 * 1024 * 1024

    def test_a_stop_lets_requests_in_flight_finish(self, served: Served, stack: Stack) -> None:
        """SIGTERM while a turn waits for the database: it is committed and answered, then the process ends with 0."""
        with served.connect() as connection:
            with stack.app.transaction(stack.tenant_id) as blocker:
                key = subject_lock_key(stack.tenant_id, "maya")
                blocker.execute(text("select pg_advisory_xact_lock(:key)"), {"key": key})
                served.post(_body("t1"), connection)
                _wait_for_a_waiter(stack)
                served.process.send_signal(signal.SIGTERM)
                _wait_until_closed(served.port)
            assert _status(connection) == 202
        assert served.process.wait(15) in (0, -signal.SIGTERM)
        with stack.app.transaction(stack.tenant_id) as after:
            assert after.execute(text("select count(*) from memoryos.turn")).scalar_one() == 1

    def test_the_output_tells_no_secret(self, served: Served, stack: Stack) -> None:
        """After good, bad and conflicting requests: no text, key, password or address with one in the output."""
        same, other = _body("t1"), _body("t1").replace(CANARY.encode(), b"other")
        statuses = []
        for body in (same, other, same[:-1], b'{"c4n4ry": 1}'):
            with served.connect() as connection:
                served.post(body, connection)
                statuses.append(_status(connection))
        assert statuses == [202, 422, 400, 422]
        served.process.terminate()
        served.process.wait(15)

        written = served.output.read_text()
        password = stack.url("app").split(":")[2].split("@")[0]
        assert '"route": "/v1/turns"' in written
        assert all(json.loads(line) for line in written.splitlines())
        for secret in (CANARY, served.key, password):
            assert secret not in written


def _wait_for_a_waiter(stack: Stack) -> None:
    waiting = text("select count(*) from pg_locks where locktype = 'advisory' and not granted")
    with stack.owner.engine.connect() as connection:
        while connection.execute(waiting).scalar_one() == 0:
            connection.rollback()


def _wait_until_closed(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
