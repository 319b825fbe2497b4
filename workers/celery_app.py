"""The Celery application: one direct queue a stage, late acks, no result backend, JSON only.

Postgres decides what is owed and whether it was done; a message is a doorbell that carries work ids.
"""

import gc
import threading
from typing import Any

from celery import Celery
from celery.signals import (
    setup_logging,
    worker_before_create_process,
    worker_process_init,
    worker_ready,
    worker_shutting_down,
)
from kombu import Queue

from memoryos_pipeline.observability import configure_logging
from memoryos_pipeline.settings import QUEUES, Settings, load_settings

WORKER_ARGUMENTS = ("--without-gossip", "--without-mingle")
GRACE_SECONDS = 30.0
"""What a hard stop allows beyond the lease."""

CHILD_START_SECONDS = 60.0
"""How long a child process may take to build what it needs; one that takes longer is killed."""

CHILD_MEMORY_KB = 400_000
"""Three times what a child with a model in it uses; one that holds more after its task is replaced."""


def broker_options(settings: Settings) -> dict[str, object]:
    """Return the transport options every process on this broker must share: the shortest timeout would win."""
    return {
        "visibility_timeout": 2 * (settings.lease_seconds + GRACE_SECONDS),
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_timeout": 10,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "max_connections": 50,
        "global_keyprefix": settings.broker_key_prefix,
    }


def build_app(settings: Settings) -> Celery:
    """Build the application over these settings."""
    app = Celery("memoryos", broker=settings.broker_url.get_secret_value())
    app.conf.update(
        broker_transport_options=broker_options(settings),
        task_queues=[Queue(name, routing_key=name) for name in QUEUES],
        task_default_queue="maintenance",
        task_default_exchange_type="direct",
        task_create_missing_queues=False,
        task_routes={f"memoryos.{name}": {"queue": name} for name in QUEUES},
        imports=[f"workers.{name}" for name in QUEUES],
        broker_transport="workers.transport:SteadyTransport",
        task_serializer="json",
        accept_content=["json"],
        result_accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=True,
        task_acks_on_failure=True,
        task_acks_on_timeout=True,
        task_reject_on_worker_lost=False,
        worker_consumer="workers.masking:MaskedConsumer",
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_prefetch_count_reduction=True,
        worker_hijack_root_logger=False,
        worker_max_tasks_per_child=1000,
        worker_max_memory_per_child=CHILD_MEMORY_KB,
        worker_proc_alive_timeout=CHILD_START_SECONDS,
        worker_send_task_events=True,
        task_send_sent_event=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_pool_acquire_timeout=5,
        task_publish_retry_policy={"max_retries": 2, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
        beat_scheduler="workers.schedule:PatientScheduler",
    )
    return app


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log_as_we_do(**_: object) -> None:
    configure_logging(load_settings().log_level)


@worker_before_create_process.connect  # type: ignore[untyped-decorator]
def _set_aside_what_is_loaded(**_: object) -> None:
    """Take what is loaded from the collector, which a parent calls before every fork: nobody is served meanwhile."""
    if not _set_aside.is_set():  # to ask the collector would walk it as well
        _set_aside.set()
        gc.collect()
        gc.freeze()


_set_aside = threading.Event()


@worker_process_init.connect  # type: ignore[untyped-decorator]
def _fresh_process(**_: object) -> None:
    """Be ready before the parent hears of this child: no message waits for it to build what it needs."""
    from workers.runtime import forget_runtime, show_up  # noqa: PLC0415 - only in the child, after the fork

    forget_runtime()
    show_up(list(app.amqp.queues.consume_from))


@worker_ready.connect  # type: ignore[untyped-decorator]
def _one_process(sender: Any, **_: object) -> None:
    """Show up in a worker that forks no children; a parent of children must open nothing before it forks."""
    if not sender.pool.uses_semaphore:
        from workers.runtime import show_up_soon  # noqa: PLC0415

        show_up_soon(list(app.amqp.queues.consume_from))


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _begin_nothing_new(**_: object) -> None:
    """Let a running stage end and hand the other rows of its message back.

    Celery's soft shutdown is not used: it sleeps its whole timeout as soon as one task is running.
    """
    from workers.envelope import stopping  # noqa: PLC0415 - the envelope imports this module's application

    stopping.set()


app = build_app(load_settings())
