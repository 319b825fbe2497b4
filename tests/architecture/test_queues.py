"""Every queue is complete: a worker module, a task of its name, a route, a compose service, a runbook."""

import importlib
from pathlib import Path

import pytest
import yaml

from memoryos_pipeline.domain.work import QUEUE_OF_KIND, WorkKind
from memoryos_pipeline.settings import QUEUES
from workers.celery_app import app

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("queue", QUEUES)
class TestQueue:
    def test_has_a_worker_module_with_its_task(self, queue: str) -> None:
        """`workers/<queue>.py` registers the task `memoryos.<queue>`."""
        importlib.import_module(f"workers.{queue}")

        assert f"memoryos.{queue}" in app.tasks

    def test_has_a_route(self, queue: str) -> None:
        """A message for the task goes to the queue, wherever it is sent from."""
        assert app.amqp.router.route({}, f"memoryos.{queue}")["queue"].name == queue

    def test_has_a_compose_service(self, queue: str) -> None:
        """Each queue is a service of its own in docker-compose.yml."""
        services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]

        assert any(f"--queues={queue}" in str(service.get("command", "")) for service in services.values())

    def test_has_a_runbook(self, queue: str) -> None:
        """Whoever is woken by a queue finds a page about it."""
        assert (ROOT / "ops" / "runbooks" / f"{queue}.md").read_text(encoding="utf-8").startswith("# ")


def test_every_kind_of_work_has_a_queue() -> None:
    """No kind of work is owed without somebody who delivers it."""
    assert set(QUEUE_OF_KIND) == set(WorkKind)
    assert set(QUEUE_OF_KIND.values()) <= set(QUEUES)
