"""The product's own processes over a test's database and broker: the API in a thread, the rest as real processes."""

import contextlib
import os
import secrets
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from memoryos_pipeline.api.app import create_app
from memoryos_pipeline.client import MemoryClient
from memoryos_pipeline.embedded.process import free_port, start_program, stop_server
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import mint_key
from tests.conftest import Stack

STOP_SECONDS = 15.0


@dataclass(frozen=True)
class System:
    """One running API, and how everything else reaches its database and its own corner of the broker."""

    stack: Stack
    api_url: str
    api_key: str
    broker_url: str
    broker_key_prefix: str
    log: Path

    def client(self) -> MemoryClient:
        return MemoryClient(self.api_url, self.api_key)

    def database_url_at(self, port: int) -> str:
        """Return the application's database URL as if Postgres listened on another port."""
        return self.stack.url("app").replace(f":{self.stack.server.port}/", f":{port}/")

    def environment(self) -> dict[str, str]:
        """Return what a process of ours needs to work on this system."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYOS_")}
        ours = {f"{role}_url": self.stack.url(role) for role in ("ledger", "owner")}
        ours |= {"database_url": self.stack.url("app"), "broker_url": self.broker_url, "api_url": self.api_url}
        ours |= {"api_key": self.api_key, "broker_key_prefix": self.broker_key_prefix, "embedder": "hashing"}
        return inherited | {f"MEMORYOS_{name.upper()}": value for name, value in ours.items()}

    @contextmanager
    def process(self, *words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run `memoryos WORDS` until the block ends; its output goes to the system's log."""
        command = [sys.executable, "-m", "memoryos_pipeline", *words]
        process = start_program(command, log=self.log, environment=self.environment() | environment)
        try:
            yield process
        finally:
            stop_server(process, how=signal.SIGTERM, seconds=STOP_SECONDS)

    @contextmanager
    def worker(self, queues: str = "ingest") -> Iterator[subprocess.Popen[bytes]]:
        """Run a real worker on some queues."""
        with self.process("worker", "--queues", queues) as process:
            yield process


@contextmanager
def running_system(stack: Stack, valkey: EmbeddedValkey, log: Path) -> Iterator[System]:
    """Serve the API of a fresh database on a port of its own, with no model: recording and reading need none."""
    parts = Parts(database=stack.app, embedder=None, language_model=None)  # type: ignore[arg-type]
    with served_api(parts) as api_url:
        prefix = f"t{secrets.token_hex(4)}:"
        yield System(stack, api_url, mint_key(stack.owner, stack.tenant_id), valkey.url, prefix, log)


@contextmanager
def served_api(parts: Parts) -> Iterator[str]:
    """Serve the application over loopback HTTP in a thread; yields its URL once it listens."""
    port = free_port()
    config = uvicorn.Config(create_app(parts), host="127.0.0.1", port=port, log_level="error", ws="none")
    server = uvicorn.Server(config)
    listening = threading.Event()
    startup = server.startup

    async def tell_when_listening(*arguments: object, **options: object) -> None:
        await startup(*arguments, **options)  # type: ignore[arg-type]
        listening.set()

    server.startup = tell_when_listening  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, name="api")
    thread.start()
    try:
        assert listening.wait(15), "the API did not start"
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def forwarded_port(port: int, *, to: int) -> Iterator[None]:
    """Pass every connection on one loopback port on to another until the block ends."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", port), _forwarder(to)) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _forwarder(target_port: int) -> type[socketserver.BaseRequestHandler]:
    class Forwarder(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", target_port)) as target:
                back = threading.Thread(target=_pump, args=(target, self.request), daemon=True)
                back.start()
                _pump(self.request, target)
                back.join(1)

    return Forwarder


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
