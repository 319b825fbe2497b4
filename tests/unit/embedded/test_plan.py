"""What the supervisor starts, decided without starting anything."""

import os
from collections import Counter
from pathlib import Path

import pytest

from memoryos_pipeline.embedded.plan import PYTHON, Endpoints, child_environment, programs, worker_queues
from memoryos_pipeline.embedded.process import start_program
from memoryos_pipeline.settings import QUEUES, Settings

ENDPOINTS = Endpoints(
    database_url="postgresql://app:db-secret@127.0.0.1:1/m",
    ledger_url="postgresql://ledger:ledger-secret@127.0.0.1:1/m",
    owner_url="postgresql://owner:owner-secret@127.0.0.1:1/m",
    broker_url="redis://:broker-secret@127.0.0.1:2/0",
    api_host="127.0.0.1",
    api_port=3,
    flower_port=4,
    flower_password="flower-secret",
)
SETTINGS = Settings(data_dir=Path("/somewhere"))


class TestSplit:
    @pytest.mark.parametrize("processes", [1, 2, 3, 5])
    def test_every_queue_is_served(self, processes: int) -> None:
        """However few or many worker processes there are, together they serve every queue."""
        split = worker_queues(processes)

        assert len(split) == processes
        assert set().union(*split) == set(QUEUES)

    def test_more_processes_share_the_thinking(self) -> None:
        """Processes beyond the second help where models are waited for."""
        served = Counter(queue for queues in worker_queues(4) for queue in queues)

        assert served["embed"] == served["distill"] == 3
        assert served["ingest"] == served["maintenance"] == 1


class TestSecrets:
    def test_no_secret_is_in_a_command_line(self) -> None:
        """Command lines can be read by every process of a machine."""
        words = [word for program in programs(SETTINGS, ENDPOINTS, {}) for word in program.command]

        assert [word for word in words if "secret" in word] == []

    def test_the_owner_stays_with_the_supervisor(self) -> None:
        """No child can migrate, mint keys or set the clock."""
        inherited = {"MEMORYOS_OWNER_URL": "owner-secret", "MEMORYOS_API_KEY": "mem_secret", "PATH": "/bin"}
        environment = child_environment(SETTINGS, ENDPOINTS, inherited)

        assert "owner-secret" not in " ".join(environment.values())
        assert "mem_secret" not in " ".join(environment.values())
        assert environment["PATH"] == "/bin"

    def test_flower_is_never_opened_by_the_shell(self) -> None:
        """FLOWER_UNAUTHENTICATED_API and its like do not leak in; the password does."""
        inherited = {"FLOWER_UNAUTHENTICATED_API": "true", "FLOWER_ADDRESS": "0.0.0.0"}
        flower = next(each for each in programs(SETTINGS, ENDPOINTS, inherited) if each.name == "flower")

        assert {name: value for name, value in flower.environment.items() if name.startswith("FLOWER_")} == {
            "FLOWER_BASIC_AUTH": "memoryos:flower-secret",
            "FLOWER_PORT": "4",
        }


class TestStart:
    def test_nothing_is_imported_from_where_somebody_stands(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A project with `workers`, `six` or `redis` of its own does not break the processes started in it."""
        project, log = tmp_path / "project", tmp_path / "logs" / "report.log"
        log.parent.mkdir()
        for name in ("workers", "six", "redis", "memoryos_pipeline"):
            (project / name).mkdir(parents=True)
            (project / name / "__init__.py").write_text("raise SystemExit('the wrong one')")
        monkeypatch.chdir(project)
        command = (*PYTHON, "-m", "celery", "-A", "workers.celery_app", "report")
        process = start_program(command, log=log, environment=os.environ)

        assert process.wait(30) == 0, log.read_text()
