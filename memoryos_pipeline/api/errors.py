"""How errors leave: one JSON shape, `{"error": {"code", "message", "field"}}`, and the right status."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from memoryos_pipeline.api.json_body import InvalidJsonError
from memoryos_pipeline.domain.errors import (
    AlreadyKnownError,
    ContendedError,
    ErasedScopeError,
    InvalidTurnError,
    MemoryosError,
    ModelError,
    NotFoundError,
    TurnConflictError,
    UnknownKeyError,
)
from memoryos_pipeline.domain.policies_presets import InvalidPolicyError
from memoryos_pipeline.domain.undoing import CannotUndoError


class ForbiddenError(MemoryosError):
    """The API key lacks the scope this needs."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"this API key lacks the scope {scope!r}")


MAX_WORDS = 500
"""Characters of a message or a field in an answer; a request may hold a name of megabytes."""

STATUS: dict[type[MemoryosError], tuple[int, str]] = {
    InvalidJsonError: (400, "invalid_json"),
    InvalidTurnError: (422, "invalid_field"),
    TurnConflictError: (422, "client_turn_id_conflict"),
    ErasedScopeError: (410, "erased"),
    ContendedError: (503, "contended"),
    UnknownKeyError: (401, "unknown_key"),
    ForbiddenError: (403, "forbidden"),
    NotFoundError: (404, "not_found"),
    InvalidPolicyError: (422, "invalid_policy"),
    CannotUndoError: (409, "cannot_undo"),
    AlreadyKnownError: (409, "already_known"),
    ModelError: (503, "model_unavailable"),
}


def error_response(status: int, code: str, message: str, field: str | None = None) -> JSONResponse:
    """Return the one shape every error has; what it repeats of a request is cut, and can always be sent."""
    named = None if field is None else _sendable(field)
    error = {"code": code, "message": _sendable(message), "field": named}
    return JSONResponse({"error": error}, status_code=status)


def _sendable(words: str) -> str:
    return words[:MAX_WORDS].encode("utf-8", "replace").decode("utf-8")


def install_error_handlers(app: FastAPI) -> None:
    """Map our errors, validation errors, faults of ours and an unreachable database to answers."""
    app.add_exception_handler(MemoryosError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
    app.add_exception_handler(OperationalError, _database_away)
    app.add_exception_handler(PoolTimeoutError, _database_away)


async def _ours(_: Request, error: Exception) -> JSONResponse:
    status, code = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), (500, "internal"))
    return error_response(status, code, str(error), getattr(error, "field", None))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    if isinstance(error.__cause__, InvalidJsonError):  # the framework wraps whatever reading a body raises
        return await _ours(request, error.__cause__)
    response = error_response(error.status_code, "http", error.detail)
    response.headers.update(error.headers or {})
    return response


async def _unexpected(_: Request, __: Exception) -> JSONResponse:
    return error_response(500, "internal", "this is a fault of the server; nothing is known about the outcome")


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type only
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "body"
    return error_response(422, "invalid_field", f"{field}: {first['msg']}", field)


async def _database_away(_: Request, __: Exception) -> JSONResponse:
    response = error_response(503, "database_unavailable", "the database does not answer; try again")
    response.headers["retry-after"] = "1"
    return response
