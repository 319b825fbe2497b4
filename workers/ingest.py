"""Queue `ingest`: turns that callers published themselves. The payload is documented in docs/queue-payload.md."""

import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import structlog
from celery.exceptions import Reject
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from memoryos_pipeline.domain.errors import (
    ContendedError,
    ErasedScopeError,
    InvalidTurnError,
    TurnConflictError,
    UnknownKeyError,
)
from memoryos_pipeline.domain.turn_body import parse_turn
from memoryos_pipeline.domain.turns import NewTurn
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.tenants import Caller, authenticate
from workers.celery_app import app
from workers.envelope import WorkTask
from workers.runtime import get_runtime

log = structlog.get_logger("workers.ingest")

PAYLOAD_VERSION = 1
MAX_TURNS = 1000
DATABASE_AWAY = (OperationalError, InterfaceError, PoolTimeoutError, ContendedError)
PATIENCE_SECONDS = 5.0
"""How long a worker waits for the database before it puts the message back at the head of the queue."""


@app.task(base=WorkTask, name="memoryos.ingest")  # type: ignore[untyped-decorator]
def ingest(*_: object, **payload: object) -> None:
    """Record the turns of one message; it is acknowledged after the commit.

    What can never be recorded is dropped with its reason in the log. While the database is away the message is
    waited with, then requeued: raising would acknowledge it.
    """
    reach("after_claim", "ingest")
    try:
        _patiently(lambda: receive(get_runtime().parts, payload), PATIENCE_SECONDS)
    except DATABASE_AWAY as error:
        log.warning("ingest_requeued", error=type(error).__name__)
        raise Reject("the database does not answer", requeue=True) from None
    except SQLAlchemyError as error:
        log.warning("ingest_message_dropped", code="database_refused", error=type(error).__name__)
    reach("after_commit_before_ack", "ingest")


def receive(parts: Parts, payload: dict[str, object]) -> None:
    """Record what a payload carries: every valid turn of a known key, in order, a transaction a conversation."""
    caller = _caller(parts, payload)
    bodies = payload.get("turns")
    if caller is None:
        return
    if payload.get("v") != PAYLOAD_VERSION or not isinstance(bodies, list) or len(bodies) > MAX_TURNS:
        log.warning("ingest_message_dropped", code="invalid_payload", tenant_id=str(caller.tenant_id))
        return
    with structlog.contextvars.bound_contextvars(tenant_id=str(caller.tenant_id)):
        for turns in _by_conversation(list(_valid_turns(bodies))):
            _record(parts, caller, turns)


def _caller(parts: Parts, payload: dict[str, object]) -> Caller | None:
    key = payload.get("api_key")
    try:
        caller = authenticate(parts.database, key if isinstance(key, str) else "")
    except UnknownKeyError:
        log.warning("ingest_message_dropped", code="unknown_key")
        return None
    if "ingest" not in caller.scopes:
        log.warning("ingest_message_dropped", code="forbidden", tenant_id=str(caller.tenant_id))
        return None
    return caller


def _valid_turns(bodies: list[Any]) -> Iterator[NewTurn]:
    for position, body in enumerate(bodies):
        try:
            yield parse_turn(body, path=f"turns.{position}.")
        except InvalidTurnError as error:
            log.warning("ingest_turn_dropped", code="invalid_field", field=error.field)


def _by_conversation(turns: list[NewTurn]) -> Iterator[list[NewTurn]]:
    for _, together in groupby(sorted(turns, key=_conversation), key=_conversation):
        yield list(together)


def _conversation(turn: NewTurn) -> tuple[str, str, str]:
    return turn.user_id, turn.agent_id, turn.conversation_id


def _record(parts: Parts, caller: Caller, turns: list[NewTurn]) -> None:
    """Record turns of one conversation; one that conflicts is dropped alone, so that the others are kept."""
    while turns:
        try:
            record_turns(
                parts.database, caller.tenant_id, turns, policy=parts.policy, max_attempts=parts.max_attempts,
                hot_copies=parts.hot_copies,
            )  # fmt: skip
        except TurnConflictError as error:
            log.warning("ingest_turn_dropped", code="client_turn_id_conflict", client_turn_id=error.client_turn_id)
            turns = [turn for turn in turns if turn.client_turn_id != error.client_turn_id]
        except ErasedScopeError:
            log.warning("ingest_turns_dropped", code="erased", count=len(turns))
            return
        else:
            return


def _patiently(act: Callable[[], None], patience_seconds: float) -> None:
    """Act, again and again while the database is away, until patience ends; then the last error is raised."""
    deadline, pause_seconds = time.monotonic() + patience_seconds, 0.1
    while True:
        try:
            act()
        except DATABASE_AWAY:
            if time.monotonic() + pause_seconds > deadline:
                raise
        else:
            return
        time.sleep(pause_seconds)
        pause_seconds = min(2.0, pause_seconds * 2)
