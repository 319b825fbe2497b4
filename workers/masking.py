"""What people said never leaves a worker by a side door: event, Flower page or log line."""

import logging
import re
from typing import Any

from celery.worker.consumer import consumer as celery_consumer
from celery.worker.request import Request

WORK_IDS = re.compile(r"\(\[\d{1,19}(, \d{1,19})*\],?\)")
MASKED = "<masked>"
BODY_FORMATS = {
    celery_consumer.UNKNOWN_FORMAT: "a message of unknown form was dropped",
    celery_consumer.UNKNOWN_TASK_ERROR: "a message for an unknown task was dropped",
    celery_consumer.INVALID_TASK_ERROR: "an invalid task message was dropped",
    celery_consumer.MESSAGE_DECODE_ERROR: "a message that cannot be decoded was dropped",
}


class MaskedRequest(Request):  # type: ignore[misc]
    """A task request whose printable form is work ids, or nothing.

    The printable form comes from the publisher, who need not be ours; Celery would copy it into events and logs.
    """

    def __init__(self, message: Any, headers: dict[str, Any] | None = None, **options: Any) -> None:
        given = message.headers if headers is None else headers
        shown = given.get("argsrepr")
        ours = isinstance(shown, str) and WORK_IDS.fullmatch(shown)
        masked = {**given, "argsrepr": shown if ours else MASKED, "kwargsrepr": MASKED, "shadow": None}
        super().__init__(message, headers=masked, **options)


class _MaskBodies(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        sentence = BODY_FORMATS.get(str(record.msg))
        if sentence:
            record.msg, record.args, record.exc_info = sentence, (), None
        return True


def mask_message_bodies(logger: logging.Logger) -> None:
    """Stop Celery from printing the bodies of messages it drops."""
    if not any(isinstance(each, _MaskBodies) for each in logger.filters):
        logger.addFilter(_MaskBodies())
