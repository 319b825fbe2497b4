"""How messages are delivered: late acknowledged, never redelivered by a lost child, read as JSON and nothing else."""

import gc
import threading
from collections.abc import Iterator

import pytest

from memoryos_pipeline.settings import QUEUES, Settings
from workers import celery_app
from workers.celery_app import GRACE_SECONDS, build_app


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has set nothing aside yet; whatever a test takes from the collector is given back."""
    monkeypatch.setattr(celery_app, "_set_aside", threading.Event())
    yield
    gc.unfreeze()


class TestBuild:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("task_acks_late", True),
            ("task_acks_on_failure", True),
            ("task_acks_on_timeout", True),
            ("task_reject_on_worker_lost", False),
            ("worker_prefetch_multiplier", 1),
            ("worker_cancel_long_running_tasks_on_connection_loss", False),
            ("broker_connection_max_retries", None),
            ("broker_pool_acquire_timeout", 5),
            ("task_create_missing_queues", False),
            ("accept_content", ["json"]),
            ("result_backend", None),
            ("worker_max_memory_per_child", 400_000),
        ],
    )
    def test_what_delivery_rests_on_is_set(self, name: str, value: object) -> None:
        """Each of these was measured to lose, double or hang otherwise."""
        assert build_app(Settings()).conf[name] == value

    def test_the_broker_waits_longer_than_any_lease(self) -> None:
        """Who redelivers earlier than a lease can end rings in vain, for every worker on this broker."""
        app = build_app(Settings(lease_seconds=120))

        assert app.conf.broker_transport_options["visibility_timeout"] >= 2 * (120 + GRACE_SECONDS)
        assert {queue.name for queue in app.conf.task_queues} == set(QUEUES)


class TestFork:
    @pytest.mark.usefixtures("thawed")
    def test_what_is_loaded_is_not_walked_before_every_fork(self) -> None:
        """It is taken from the collector once; a child that is replaced holds nobody up."""
        celery_app._set_aside_what_is_loaded()
        frozen = gc.get_freeze_count()
        garbage = [object()]
        celery_app._set_aside_what_is_loaded()

        assert frozen > 0
        assert gc.get_freeze_count() <= frozen
        assert garbage
