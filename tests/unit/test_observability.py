"""No log line carries a secret or the text of a turn, whoever wrote it."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from sqlalchemy.exc import DataError

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.observability import configure_logging

CANARY = "c4n4ry-Xy7"
KEY = "mem_" + "k" * 43


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    """Everything that is logged meanwhile."""
    root = logging.getLogger()
    kept = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("info", stream=stream)
    yield stream
    root.handlers[:], root.level = kept
    structlog.reset_defaults()


def _lines(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


class TestShape:
    def test_a_line_is_json_with_its_facts(self, output: io.StringIO) -> None:
        """Event, level, logger and time stand beside the allowed fields and the bound ids."""
        with structlog.contextvars.bound_contextvars(request_id="r1"):
            structlog.get_logger("workers.relay").warning("relay_waits", count=3)
        line = _lines(output)[0]

        assert line["timestamp"].endswith("+00:00")
        assert {name: line[name] for name in ("event", "level", "logger", "count", "request_id")} == {
            "event": "relay_waits",
            "level": "warning",
            "logger": "workers.relay",
            "count": 3,
            "request_id": "r1",
        }

    def test_other_loggers_write_the_same_lines(self, output: io.StringIO) -> None:
        """A library's line is JSON too, its arguments filled in."""
        logging.getLogger("somebody.elses.library").info("listening on %s:%d", "127.0.0.1", 80)
        assert _lines(output)[0]["event"] == "listening on 127.0.0.1:80"

    def test_chatty_clients_are_quiet(self, output: io.StringIO) -> None:
        """HTTP clients log addresses at info; they are heard from warning on."""
        logging.getLogger("httpx").info("HTTP Request: POST https://example.org")
        logging.getLogger("httpx").warning("trouble")
        assert [line["event"] for line in _lines(output)] == ["trouble"]

    def test_a_line_below_the_level_is_not_written(self, output: io.StringIO) -> None:
        """Debug lines stay silent at level info, ours and others'."""
        structlog.get_logger("x").debug("quiet")
        logging.getLogger("x").debug("quiet")
        assert _lines(output) == []


class TestAllowFields:
    def test_an_unknown_field_leaves_only_its_name(self, output: io.StringIO) -> None:
        """A field nobody allowed may hold anything, so its value is dropped."""
        structlog.get_logger("x").info("turn_seen", content=CANARY, body={"text": CANARY}, count=1)

        assert CANARY not in output.getvalue()
        assert (_lines(output)[0]["dropped_fields"], _lines(output)[0]["count"]) == (["body", "content"], 1)

    def test_a_field_name_made_by_a_caller_is_not_shown(self, output: io.StringIO) -> None:
        """Names of fields come from bodies; only plain ones are told."""
        log = structlog.get_logger("x")
        log.info("refused", field="turns.3.occurred_at")
        log.info("refused", field=f"metadata.{CANARY}")

        assert [line["field"] for line in _lines(output)] == ["turns.3.occurred_at", "[not a plain name]"]


SECRETS = [
    KEY,
    "sk-ant-api03-" + CANARY,
    f"Authorization: Bearer {CANARY}.abc",
    f"postgresql://app:{CANARY}@db.example.org:5432/memoryos",
    f"redis://:p@ss/{CANARY}@127.0.0.1:6379/0",
    f"password={CANARY}",
    f"{{'api_key': '{CANARY}'}}",
]


class TestRedact:
    @pytest.mark.parametrize("secret", SECRETS)
    def test_secrets_are_known_by_their_looks(self, output: io.StringIO, secret: str) -> None:
        """In a field, in a library's sentence, in its arguments, in a nested value: taken out."""
        structlog.get_logger("x").info("seen", reason=secret, counts={"deep": [secret]})
        logging.getLogger("other").warning("connect to " + secret)
        logging.getLogger("other").warning("connect to %s", secret)
        logging.getLogger("other").warning("connect to %(where)s", {"where": secret})

        assert len(_lines(output)) == 4
        assert CANARY not in output.getvalue()
        assert KEY not in output.getvalue()

    def test_secrets_are_known_by_their_keys(self, output: io.StringIO) -> None:
        """A nested value under a telling key is taken out, whatever it looks like."""
        structlog.get_logger("x").info("seen", counts={"password": CANARY, "database_url": CANARY, "tokens_in": 3})

        assert CANARY not in output.getvalue()
        assert _lines(output)[0]["counts"]["tokens_in"] == 3

    def test_task_arguments_in_a_worker_line_are_hidden(self, output: io.StringIO) -> None:
        """Celery names what a task was given and returned in its own lines; these arguments are not filled in."""
        logging.getLogger("celery.app.trace").error(
            "Task %(name)s %(args)s %(exc)s", {"name": "memoryos.ingest", "args": (CANARY,), "exc": CANARY}
        )
        assert CANARY not in output.getvalue()
        assert "memoryos.ingest" in _lines(output)[0]["event"]


class TestFailure:
    def test_an_exception_shows_where_and_not_what(self, output: io.StringIO) -> None:
        """Types, codes and places; neither its message, nor its locals, nor what it was caused by says more."""

        def fail() -> None:
            text = CANARY
            try:
                {}[text]
            except KeyError as error:
                raise ValueError(f"cannot read {text}") from error

        for log in (structlog.get_logger("ours").exception, logging.getLogger("theirs").exception):
            try:
                fail()
            except ValueError:
                log("failed")

        ours, theirs = _lines(output)
        assert CANARY not in output.getvalue()
        assert ours["exception"] == theirs["exception"]
        assert [link["type"] for link in ours["exception"]["chain"]] == ["builtins.ValueError", "builtins.KeyError"]
        assert ours["exception"]["frames"][-1].endswith(" fail")

    def test_a_database_error_shows_its_code(self, output: io.StringIO) -> None:
        """The statement, its parameters and the driver's sentence stay out, the SQLSTATE is told."""

        class DriverError(Exception):
            sqlstate = "22P05"

        error = DataError(f"insert {CANARY}", {"content": CANARY}, DriverError(CANARY))
        structlog.get_logger("x").error("failed", exc_info=error)

        assert CANARY not in output.getvalue()
        assert _lines(output)[0]["exception"]["chain"][0]["sqlstate"] == "22P05"

    def test_an_exception_as_argument_is_named_only(self, output: io.StringIO) -> None:
        """A library that logs an exception object logs its type."""
        logging.getLogger("other").error("failed: %r", ValueError(CANARY))
        logging.getLogger("other").error(ValueError(CANARY))

        assert [line["event"] for line in _lines(output)] == ["failed: 'ValueError'", "ValueError"]

    def test_our_own_errors_say_what_they_mean(self, output: io.StringIO) -> None:
        """Messages of our own errors are written by us and are shown."""
        structlog.get_logger("x").error("failed", exc_info=NotFoundError())
        assert _lines(output)[0]["exception"]["chain"][0]["message"] == NotFoundError.__doc__
