"""Puts turns on the queue `ingest`: the message of docs/queue-payload.md, with nothing printable in its headers."""

from collections.abc import Sequence
from typing import Any

from celery import Celery
from kombu import Queue
from kombu.exceptions import OperationalError
from redis import RedisError

QUEUE = "ingest"
TASK = "memoryos.ingest"
PAYLOAD_VERSION = 1
MAX_TURNS = 100
MAX_PAYLOAD_BYTES = 1 << 20
"""A message stays below this unless a single turn is larger; the broker's memory is bounded."""

MASKED = "<turns>"
BROKER_ERRORS: tuple[type[Exception], ...] = (OperationalError, RedisError, OSError)
"""What publishing raises when the broker is away or full; the outcome is then unknown."""


class IngestQueue:
    """A Celery application of its own that only publishes. Sends no task-sent event and keeps no result."""

    def __init__(self, broker_url: str, *, key_prefix: str = "mem:") -> None:
        self._app = Celery("memoryos-publisher", broker=broker_url, set_as_current=False)
        self._app.conf.update(
            broker_transport_options={
                "socket_timeout": 10,
                "socket_connect_timeout": 3,
                "socket_keepalive": True,
                "health_check_interval": 25,
                "max_connections": 10,
                "global_keyprefix": key_prefix,
            },
            broker_pool_acquire_timeout=5,
            task_queues=[Queue(QUEUE, routing_key=QUEUE)],
            task_default_queue=QUEUE,
            task_default_exchange_type="direct",
            task_create_missing_queues=False,
            task_serializer="json",
            accept_content=["json"],
            result_backend=None,
            task_ignore_result=True,
            task_send_sent_event=False,
        )

    def publish(self, api_key: str, bodies: Sequence[dict[str, Any]]) -> None:
        """Send one message of at most 100 turns. Raises one of BROKER_ERRORS within seconds when it cannot."""
        if len(bodies) > MAX_TURNS:
            raise ValueError(f"a message carries at most {MAX_TURNS} turns")
        self._app.send_task(
            TASK,
            kwargs={"v": PAYLOAD_VERSION, "api_key": api_key, "turns": list(bodies)},
            queue=QUEUE,
            argsrepr=MASKED,
            kwargsrepr=MASKED,
            ignore_result=True,
            retry=True,
            retry_policy={"max_retries": 2, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
        )

    def close(self) -> None:
        """Close the connections to the broker."""
        self._app.close()
