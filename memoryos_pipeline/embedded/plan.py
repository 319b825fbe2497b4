"""What runs beside the servers: the commands of our own processes and the environment they are given. Pure."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from memoryos_pipeline.embedded import flower_config_path
from memoryos_pipeline.settings import QUEUES, Settings

THINKING = ("embed", "summarize", "distill", "merge")
"""Queues that wait for a model; the rest are short statements and share one process."""
FLOWER_USER = "memoryos"
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PYTHON = (sys.executable, "-P")
"""Never imports from the directory somebody happens to stand in: it may hold a `workers` of its own."""
OURS_ALONE = ("MEMORYOS_OWNER_URL", "MEMORYOS_API_KEY")
"""What no child needs: the owner migrates and mints, a key is for callers."""


@dataclass(frozen=True)
class Program:
    """One process of ours: its command holds no secret, its environment may."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Endpoints:
    """Where the parts of one system are, secrets included."""

    database_url: str
    ledger_url: str
    owner_url: str
    broker_url: str
    api_host: str
    api_port: int
    flower_port: int
    flower_password: str

    @property
    def api_url(self) -> str:
        """Where callers on this machine reach the API."""
        host = "127.0.0.1" if self.api_host in {"0.0.0.0", "::", ""} else self.api_host  # noqa: S104 - compared
        return f"http://{f'[{host}]' if ':' in host else host}:{self.api_port}"

    @property
    def flower_url(self) -> str:
        """Where Flower answers; loopback only."""
        return f"http://127.0.0.1:{self.flower_port}"


def worker_queues(processes: int) -> list[tuple[str, ...]]:
    """Return which queues each worker process serves; together they serve every one."""
    short = tuple(name for name in QUEUES if name not in THINKING)
    if processes == 1:
        return [QUEUES]
    return [short, *[THINKING] * (processes - 1)]


def programs(settings: Settings, endpoints: Endpoints, inherited: Mapping[str, str]) -> list[Program]:
    """Return every process of ours, in the order they are started."""
    environment = child_environment(settings, endpoints, inherited)
    plain = [("api", ("api",)), ("relay", ("relay",)), ("beat", ("beat",))]
    workers = [
        (f"worker-{number}", ("worker", "--queues", ",".join(queues)))
        for number, queues in enumerate(worker_queues(settings.embedded_workers), start=1)
    ]
    ours = [Program(name, (*memoryos_command(), *words), environment) for name, words in (*plain, *workers)]
    if find_spec("flower"):
        ours.append(flower_program(endpoints, environment))
    return ours


def flower_program(endpoints: Endpoints, environment: Mapping[str, str]) -> Program:
    """Return Flower, its password and port in the environment and the rest in its configuration file."""
    configuration = f"--conf={flower_config_path()}"
    command = (*PYTHON, "-m", "celery", "-A", "workers.celery_app", "flower", configuration)
    own = {
        "FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{endpoints.flower_password}",
        "FLOWER_PORT": str(endpoints.flower_port),
    }
    return Program("flower", command, {**environment, **own})


def memoryos_command() -> tuple[str, ...]:
    """Return how a child runs the `memoryos` command of this very installation."""
    return (*PYTHON, "-m", "memoryos_pipeline")


def child_environment(settings: Settings, endpoints: Endpoints, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of our processes: what we inherited, and where everything is."""
    # FLOWER_UNAUTHENTICATED_API and its like must not leak in from a shell.
    kept = {
        name: value for name, value in inherited.items() if not name.startswith("FLOWER_") and name not in OURS_ALONE
    }
    return {
        **kept,
        **ONE_THREAD,
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUNBUFFERED": "1",
        "MEMORYOS_DATABASE_URL": endpoints.database_url,
        "MEMORYOS_LEDGER_URL": endpoints.ledger_url,
        "MEMORYOS_BROKER_URL": endpoints.broker_url,
        "MEMORYOS_API_HOST": endpoints.api_host,
        "MEMORYOS_API_PORT": str(endpoints.api_port),
        "MEMORYOS_API_URL": endpoints.api_url,
        "MEMORYOS_DATA_DIR": str(settings.data_dir),
    }
