"""What can go wrong between a caller and the pipeline, with the status, code and field the API named."""

from typing import Any


class MemoryClientError(Exception):
    """Something went wrong between this client and the memory pipeline."""


class ApiError(MemoryClientError):
    """The API refused a request. `status`, `code` and `field` are what it answered."""

    def __init__(self, status: int, *, code: str, message: str, field: str | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.field = field


class InvalidRequestError(ApiError):
    """A field cannot be stored or a query cannot be answered (400, 413, 422); repeating will not help."""


class ConflictError(InvalidRequestError):
    """The same client_turn_id was sent before with another body."""


class UnauthorizedError(ApiError):
    """The key is unknown (401) or lacks a scope (403)."""


class NotFoundError(ApiError):
    """There is no such thing in this tenant (404)."""


class ErasedError(ApiError):
    """This user was erased (410)."""


class UnavailableError(ApiError):
    """The pipeline cannot answer now (5xx); the same request may be sent again with the same keys."""


class NoAnswerError(MemoryClientError):
    """No answer came, so the outcome is unknown; the same request may be sent again with the same keys."""


class UnsendableError(MemoryClientError):
    """A value cannot be written as JSON (a lone surrogate, a not-finite number, an object); nothing was sent."""


class NotDrainedError(MemoryClientError):
    """The pipeline still owed work when the time to wait was over."""

    def __init__(self, owed: int, seconds: float) -> None:
        super().__init__(f"{owed} pieces of work were still owed after {seconds:.0f} s")
        self.owed = owed


class NotThereYetError(MemoryClientError):
    """A conversation had not come through a stage when the time to wait was over. `watermarks` say how far it was."""

    def __init__(self, through: str, seconds: float, watermarks: dict[str, Any]) -> None:
        told = watermarks["waits_for"].get(through) or watermarks["waits_for"].get("sealed")
        reached = f"turn {watermarks[through]} of {watermarks['recorded']}"
        super().__init__(f"after {seconds:.0f} s it is {through} through {reached}; it waits for: {told}")
        self.watermarks = watermarks


BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequestError,
    401: UnauthorizedError,
    403: UnauthorizedError,
    404: NotFoundError,
    410: ErasedError,
    413: InvalidRequestError,
    422: InvalidRequestError,
}


def error_of(status: int, payload: Any) -> ApiError:
    """Return the typed error of an answer; `payload` is its JSON, or None when it had none."""
    detail = payload.get("error") if isinstance(payload, dict) else None
    told = detail if isinstance(detail, dict) else {}
    code = str(told.get("code") or "unknown")
    kind = BY_STATUS.get(status, UnavailableError if status >= 500 else ApiError)
    if code == "client_turn_id_conflict":
        kind = ConflictError
    return kind(status, code=code, message=str(told.get("message") or "no reason given"), field=told.get("field"))
