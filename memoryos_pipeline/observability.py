"""Logs: one JSON object a line on stderr, only allowed fields, secrets taken out last. No text of a turn, ever.

Other people's loggers go the same way. An exception is its types, codes and places; its message stays out unless it
is one of ours, because drivers and libraries quote what they were given.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import structlog

from memoryos_pipeline.domain.errors import MemoryosError

EventDict = MutableMapping[str, Any]

ALLOWED_FIELDS = frozenset({
    "event", "level", "logger", "timestamp", "exception", "request_id", "method", "route", "status",
    "duration_ms", "tenant_id", "scope_id", "conversation_id", "turn_id", "page_id", "segment_id",
    "knowledge_id", "work_id", "work_ids", "retrieval_id", "trace_id", "kind", "kinds", "queue", "queues",
    "task", "fence", "generation", "attempts", "executions", "deferrals", "max_attempts", "lease_seconds",
    "delay_seconds", "seconds", "slot", "name", "process", "pid", "role", "host", "port", "signal",
    "exit_code", "count", "counts", "turns", "pages", "published", "completed", "owed", "reaped",
    "unstamped", "seq", "position", "error", "error_class", "code", "field", "sqlstate", "dead", "held",
    "model", "prompt_version", "tokens_in", "tokens_out", "dimensions", "version", "reason",
    "dropped_fields",
})  # fmt: skip
"""What a log line may carry: ids of ours, names of ours, numbers. Another field leaves only its name."""
SECRET_KEY = re.compile(r"(?i)password|passwd|secret|authorization|cookie|api_?key|token$|dsn|_url$")
SECRET_ARGUMENTS = frozenset({"exc", "traceback", "args", "kwargs", "return_value", "internal"})
"""Named arguments of Celery's own log lines that can hold what a task was given."""
REDACTED = "[redacted]"
PATTERNS = (
    (re.compile(r"\bmem_[A-Za-z0-9_-]{6,}"), f"mem_{REDACTED}"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{6,}"), f"sk-{REDACTED}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)\S*@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?i)\b(password|passwd|secret|token|api[_-]?key)(['\"]?\s*[=:]\s*)\S+"), rf"\1\2{REDACTED}"),
)
PLAIN_NAME = re.compile(r"[a-z0-9_.]{1,100}")
LONGEST_VALUE = 2000
LONGEST_CHAIN = 5
MOST_FRAMES = 20
QUIET_LOGGERS = ("httpx", "httpx2", "httpcore", "anthropic", "alembic", "sqlalchemy", "urllib3")


def configure_logging(level: str = "info", *, stream: TextIO | None = None) -> None:
    """Send every log line of this process, ours and others', through the one chain to `stream` (stderr)."""
    number = logging.getLevelNamesMapping()[level.upper()]
    output = stream or sys.stderr
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _add_facts, *TAIL],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *names: _LineLogger(output, *names),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(_ForeignFormatter())
    logging.basicConfig(handlers=[handler], level=number, force=True)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "celery"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


class _LineLogger(structlog.WriteLogger):
    """Writes finished lines, and knows the name it was asked for under."""

    def __init__(self, stream: TextIO, name: str = "memoryos") -> None:
        super().__init__(stream)
        self.name = name


class _ForeignFormatter(logging.Formatter):
    """Renders a record of the standard library as if it were one of ours."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "event": _foreign_message(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": _moment(record.created),
            "exc_info": record.exc_info,
        }
        line: Any = event
        for processor in TAIL:
            line = processor(None, record.levelname, line)
        return str(line)


def _foreign_message(record: logging.LogRecord) -> str:
    template, arguments = record.msg, record.args
    if isinstance(template, BaseException):
        return type(template).__name__
    if isinstance(arguments, Mapping):
        hidden = {name: REDACTED if name in SECRET_ARGUMENTS else _shown(arguments[name]) for name in arguments}
        return str(template) % hidden
    return str(template) % tuple(map(_shown, arguments)) if arguments else str(template)


def _shown(argument: object) -> object:
    return type(argument).__name__ if isinstance(argument, BaseException) else argument


def _add_facts(logger: Any, method: str, event: EventDict) -> EventDict:
    event["level"] = "error" if method == "exception" else method
    event["logger"] = logger.name
    event["timestamp"] = _moment()
    return event


def _moment(seconds: float | None = None) -> str:
    # A log line tells when this process wrote it; what the pipeline decides by is the database's clock.
    now = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)  # noqa: TID251
    return now.isoformat(timespec="milliseconds")


def describe_failure(_: Any, __: str, event: EventDict) -> EventDict:
    """Replace `exc_info` by types, codes and places of the exception and what caused it."""
    failure = event.pop("exc_info", None)
    if failure is True:
        failure = sys.exc_info()
    if isinstance(failure, tuple):
        failure = failure[1]
    if isinstance(failure, BaseException):
        event["exception"] = {
            "chain": [_one_failure(error) for error in _chain(failure)],
            "frames": _frames(failure.__traceback__),
        }
    return event


def allow_fields(_: Any, __: str, event: EventDict) -> EventDict:
    """Drop every field that is not on the allow-list, leaving its name."""
    refused = [name for name in event if name not in ALLOWED_FIELDS]
    for name in refused:
        del event[name]
    if refused:
        event["dropped_fields"] = sorted(refused)
    if "field" in event and not PLAIN_NAME.fullmatch(str(event["field"])):
        event["field"] = "[not a plain name]"
    return event


def redact(_: Any, __: str, event: EventDict) -> EventDict:
    """Take secrets out of every value, by key and by pattern."""
    return {name: _redacted(value) for name, value in event.items()}


def render(_: Any, __: str, event: EventDict) -> str:
    """Return the finished line."""
    return json.dumps(event, default=str)


TAIL = (describe_failure, allow_fields, redact, render)


def _redacted(value: object) -> object:
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, Mapping):
        return {
            str(name): REDACTED if SECRET_KEY.search(str(name)) else _redacted(item) for name, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(item) for item in value]
    text = str(value)[:LONGEST_VALUE]
    for pattern, replacement in PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def _one_failure(error: BaseException) -> dict[str, object]:
    told: dict[str, object] = {"type": f"{type(error).__module__}.{type(error).__qualname__}"}
    sqlstate = getattr(getattr(error, "orig", error), "sqlstate", None)
    if sqlstate:
        told["sqlstate"] = sqlstate
    if isinstance(error, OSError) and error.errno:
        told["errno"] = error.errno
    if isinstance(error, MemoryosError):
        told["message"] = str(error)
    return told


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _frames(trace: TracebackType | None) -> list[str]:
    places = [
        f"{'/'.join(Path(frame.f_code.co_filename).parts[-3:])}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(trace)
    ]
    return places[-MOST_FRAMES:]
