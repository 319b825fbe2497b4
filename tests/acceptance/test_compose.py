"""docker-compose.yml: valid, without a default password, and each service runs as it is written there."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from memoryos_pipeline.embedded.process import free_port
from memoryos_pipeline.embedded.valkey import EmbeddedValkey
from memoryos_pipeline.settings import QUEUES
from tests.acceptance.running import wait_until
from tests.conftest import Stack

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
ROLES = ("POSTGRES", "MEMORYOS_OWNER", "MEMORYOS_APP", "MEMORYOS_LEDGER", "VALKEY", "FLOWER")
PASSWORDS = {f"{role}_PASSWORD": "word" for role in ROLES}
OURS = ("api", "relay", "beat", "flower", *QUEUES)
HEARTBEATS = text("select count(*) from memoryos.heartbeat where role = :role")
SLOTS = text("select count(*) from memoryos.periodic_run")


def _services(**environment: str) -> dict[str, Any]:
    command = [BIN / "docker-compose", "--project-directory", ROOT, "config", "--format", "json"]
    found = subprocess.run(
        command, env={"PATH": os.environ["PATH"], **environment}, capture_output=True, check=True, cwd=ROOT
    )
    services: dict[str, Any] = json.loads(found.stdout)["services"]
    return services


@dataclass
class Service:
    """One service of the compose file, started as a process on the embedded servers."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    port: int

    def wrote(self, words: str) -> bool:
        """Tell whether its output has these words."""
        return words in self.log.read_text(encoding="utf-8", errors="replace")

    def answers(self, path: str, **headers: str) -> int:
        """Return the status of a request, 0 when nobody listens."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0


def _start(service: dict[str, Any], name: str, *, urls: dict[str, str], place: Path) -> Service:
    """Start a service's own command in its own environment; only where things are is exchanged."""
    port = free_port()
    moved = {
        "MEMORYOS_API_HOST": "127.0.0.1",
        "MEMORYOS_API_PORT": str(port),
        "MEMORYOS_EMBEDDER": "hashing",
        "MEMORYOS_SWEEP_SECONDS": "1",
        **urls,
    }
    given = {key: moved.get(key, value) for key, value in service["environment"].items()}
    given |= {key: moved[key] for key in ("MEMORYOS_EMBEDDER", "MEMORYOS_SWEEP_SECONDS")}
    words = [str(word).replace("$$", "$") for word in service["command"]]
    words = [{"--port=5555": f"--port={port}", "--address=0.0.0.0": "--address=127.0.0.1"}.get(w, w) for w in words]
    for mount in service.get("volumes", []):
        words = [word.replace(mount["target"], mount["source"]) for word in words]
    log = place / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            words,
            cwd="/",
            env={"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1", **given},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Service(name, process, log, port)


@pytest.fixture
def urls(stack: Stack, valkey: EmbeddedValkey) -> dict[str, str]:
    """Where the embedded servers are, as the services are told."""
    return {
        "MEMORYOS_DATABASE_URL": stack.url("app"),
        "MEMORYOS_LEDGER_URL": stack.url("ledger"),
        "MEMORYOS_OWNER_URL": stack.url("owner"),
        "MEMORYOS_BROKER_URL": valkey.url,
    }


@pytest.fixture
def running(urls: dict[str, str], tmp_path: Path) -> Iterator[dict[str, Service]]:
    """Every service of ours, running."""
    described = _services(**PASSWORDS)
    services = {name: _start(described[name], name, urls=urls, place=tmp_path) for name in OURS}
    yield services
    for service in services.values():
        if service.process.poll() is None:
            os.killpg(service.process.pid, signal.SIGKILL)
            service.process.wait()


class TestFile:
    def test_it_is_valid_as_it_stands(self) -> None:
        """`docker compose config -q` passes on a fresh clone, silently."""
        found = subprocess.run(
            [BIN / "docker-compose", "config", "-q"],
            cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, check=False,
        )  # fmt: skip

        assert (found.returncode, found.stderr) == (0, b"")

    def test_no_password_has_a_default(self) -> None:
        """Without an environment file no secret is set: services say what they lack and do not start."""
        services = _services()

        assert services["postgres"]["environment"]["POSTGRES_PASSWORD"] == ""
        assert services["flower"]["environment"]["FLOWER_BASIC_AUTH"] == "memoryos:"
        assert "word" in _services(**PASSWORDS)["api"]["environment"]["MEMORYOS_DATABASE_URL"]

    def test_only_the_migration_is_the_owner(self) -> None:
        """No long-lived service can migrate, mint keys or set the clock."""
        services = _services(**PASSWORDS)

        assert [n for n, s in services.items() if "MEMORYOS_OWNER_URL" in (s["environment"] or {})] == ["migrate"]

    def test_nothing_listens_beyond_this_machine(self) -> None:
        """Ports are published on loopback only."""
        ports = [port for service in _services().values() for port in service.get("ports", [])]

        assert [port["host_ip"] for port in ports] == ["127.0.0.1", "127.0.0.1"]

    def test_servers_refuse_to_start_without_a_password(self, tmp_path: Path) -> None:
        """Valkey and Flower say which variable is missing."""
        services = _services()
        for name, missing in (("valkey", "VALKEY_PASSWORD"), ("flower", "FLOWER_BASIC_AUTH")):
            service = _start(services[name], name, urls={}, place=tmp_path)

            assert service.process.wait(60) != 0
            assert service.wrote(missing)


class TestServices:
    def test_the_migration_ends_well(self, urls: dict[str, str], tmp_path: Path) -> None:
        """`migrate` brings the schema up to date and ends with 0, also when it is up to date."""
        service = _start(_services(**PASSWORDS)["migrate"], "migrate", urls=urls, place=tmp_path)

        assert service.process.wait(60) == 0, service.log.read_text()

    def test_every_service_comes_up_and_stops_gracefully(self, running: dict[str, Service], stack: Stack) -> None:
        """Each answers, consumes its queue or reports progress; SIGTERM ends each within its grace period."""
        flower, login = running["flower"], base64.b64encode(b"memoryos:word").decode()

        assert wait_until(lambda: running["api"].answers("/readyz") == 200, seconds=60)
        for queue in QUEUES:
            assert wait_until(lambda name=queue: running[name].wrote("ready."), seconds=60), queue
        assert wait_until(lambda: _count(stack, HEARTBEATS, role="relay"), seconds=30)
        assert wait_until(lambda: _count(stack, SLOTS), seconds=30), running["beat"].log.read_text()
        assert wait_until(lambda: flower.answers("/workers") == 401, seconds=60)
        assert flower.answers("/workers", Authorization=f"Basic {login}") == 200

        for service in running.values():
            service.process.send_signal(signal.SIGTERM)
        ended = {name: service.process.wait(40) for name, service in running.items()}
        assert {name: code for name, code in ended.items() if code not in (0, -signal.SIGTERM)} == {}


def _count(stack: Stack, query: Any, **values: str) -> int:
    with stack.ledger_database.across_tenants() as connection:
        return int(connection.execute(query, values).scalar_one())


def test_the_compose_binary_is_there() -> None:
    """The checks above run a real Compose, not a YAML parser."""
    assert shutil.which("docker-compose", path=str(BIN))
