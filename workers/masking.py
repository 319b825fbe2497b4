"""What people said never leaves by a side door: event, inspection, Flower page or log line.

Whoever publishes need not be ours, and Celery copies what a publisher writes into headers, events and logs.
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import structlog
from celery.worker.consumer import Consumer
from celery.worker.request import Request

log = structlog.get_logger("workers.masking")

WORK_IDS = re.compile(r"\(\[\d{1,19}(, \d{1,19})*\],?\)")
TASK_NAME = re.compile(r"memoryos\.[a-z]{1,20}")
TASK_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ERROR_NAME = re.compile(r"[A-Z][A-Za-z]{1,60}")
PLAIN = re.compile(r"[A-Za-z0-9_.@:+/-]{0,200}")
MASKED = "<masked>"
IDS = ("id", "root_id", "parent_id", "group")
"""Headers that name a task. A publisher may put anything into them."""


def mask_args(shown: object) -> str:
    """Return the printable arguments of a task when they are work ids and nothing else."""
    return shown if isinstance(shown, str) and WORK_IDS.fullmatch(shown) else MASKED


def mask_id(task_id: object) -> str | None:
    """Return a task's id, or one made from it when it is no UUID: a sentence is a possible task id."""
    if task_id is None:
        return None
    shown = str(task_id)
    return shown if TASK_ID.fullmatch(shown) else str(uuid5(NAMESPACE_OID, shown))


def mask_error(shown: object) -> str:
    """Return the name an error begins with; its message may quote anything."""
    name = str(shown).partition("(")[0]
    return name if ERROR_NAME.fullmatch(name) else MASKED


def mask_plain(shown: object) -> object:
    """Return a number or a plain name; any other text is masked."""
    return shown if shown is None or isinstance(shown, int | float) or PLAIN.fullmatch(str(shown)) else MASKED


def _mask_name(shown: object) -> str:
    return shown if isinstance(shown, str) and TASK_NAME.fullmatch(shown) else MASKED


def _mask(shown: object) -> str | None:
    return None if shown is None else MASKED


EVENT_FIELDS: Mapping[str, Callable[[Any], object]] = {
    "name": _mask_name,
    "args": mask_args,
    "kwargs": _mask,
    "result": _mask,
    "exception": mask_error,
    "traceback": _mask,
    "uuid": mask_id,
    "root_id": mask_id,
    "parent_id": mask_id,
}
"""Fields of a task event that can carry what was said; every other text in one must be a plain name."""


def mask_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Celery event as it may be shown, whoever sent it."""
    if not str(event.get("type")).startswith("task-"):
        return dict(event)
    return {name: EVENT_FIELDS.get(name, mask_plain)(value) for name, value in event.items()}


class MaskedRequest(Request):  # type: ignore[misc]
    """A task request that prints as work ids, or as nothing."""

    def __init__(self, message: Any, headers: dict[str, Any] | None = None, **options: Any) -> None:
        given = message.headers if headers is None else headers
        masked = {**given, "argsrepr": mask_args(given.get("argsrepr")), "kwargsrepr": MASKED, "shadow": None}
        masked |= {name: mask_id(given[name]) for name in IDS if name in given}
        super().__init__(message, headers=masked, **options)

    def info(self, safe: bool = False) -> dict[str, Any]:  # noqa: ARG002 - what is unsafe is not given to anybody
        """Describe the request to an inspection; Celery itself would list the arguments of waiting tasks."""
        described: dict[str, Any] = super().info(safe=True)
        return described

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002 - Celery's own name
        """Send an event about the request, without its result and without what an error quotes."""
        super().send_event(type, **{name: EVENT_FIELDS.get(name, mask_plain)(value) for name, value in fields.items()})


class MaskedConsumer(Consumer):  # type: ignore[misc]
    """A consumer that drops what it cannot do without printing it or telling anybody what it was.

    Celery itself ends the worker over some of it, after it has put the message back for the next one to die of.
    """

    def create_task_handler(self, *options: Any, **named: Any) -> Callable[[Any], None]:
        """Return what is called with every message; it raises when the broker is away, and not for what is in one."""
        handle = super().create_task_handler(*options, **named)

        def handle_or_drop(message: Any) -> None:
            try:
                handle(message)
            except self.connection_errors:
                raise
            except Exception:  # noqa: BLE001 - what a stranger's message does to Celery's own code, nobody can list
                self._drop(message, "unusable_message")

        return handle_or_drop

    def on_unknown_message(self, _body: Any, message: Any) -> None:
        """Drop a message that is no task."""
        self._drop(message, "unknown_form")

    def on_unknown_task(self, _body: Any, message: Any, _exc: Exception) -> None:
        """Drop a message for a task that does not exist."""
        self._drop(message, "unknown_task")

    def on_invalid_task(self, _body: Any, message: Any, _exc: Exception) -> None:
        """Drop a message that breaks Celery's protocol."""
        self._drop(message, "invalid_task")

    def on_decode_error(self, message: Any, _exc: Exception) -> None:
        """Drop a message whose body cannot be read."""
        self._drop(message, "unreadable_body")

    def _drop(self, message: Any, code: str) -> None:
        log.warning("message_dropped", code=code)
        message.reject_log_error(logging.getLogger(__name__), self.connection_errors)
