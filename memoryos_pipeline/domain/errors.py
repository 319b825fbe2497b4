"""The family of errors. The class docstring is the default message; the exception carries the data."""

from memoryos_pipeline.domain.work import ErrorClass


class MemoryosError(Exception):
    """Something went wrong in the memory pipeline."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class InvalidTurnError(MemoryosError):
    """A turn has a field that cannot be stored."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class TurnConflictError(MemoryosError):
    """The same client_turn_id was sent before with another body."""

    field = "client_turn_id"

    def __init__(self, client_turn_id: str) -> None:
        super().__init__(f"client_turn_id {client_turn_id!r} was sent before with another body")
        self.client_turn_id = client_turn_id


class ContendedError(MemoryosError):
    """Others write the same rows at this moment; nothing was stored, try again."""


class ErasedScopeError(MemoryosError):
    """This user was erased; nothing can be recorded for them."""


class UnknownKeyError(MemoryosError):
    """The API key is missing, unknown, expired or revoked."""


class NotFoundError(MemoryosError):
    """There is no such thing in this tenant."""


class AlreadyKnownError(MemoryosError):
    """Another live statement of this memory says exactly that."""


class FencedError(MemoryosError):
    """Another worker owns this work row by now; nothing was written."""


class StaleReadError(MemoryosError):
    """What was read before thinking has changed since; the work is run again without burning an attempt."""

    error_class = ErrorClass.DEFERRED


class ModelError(MemoryosError):
    """A language model or embedder did not give a usable answer."""

    error_class = ErrorClass.TRANSIENT

    def __init__(self, message: str | None = None, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ModelUnavailableError(ModelError):
    """The model asks us to come back later (rate limit, overload); no attempt is burnt."""

    error_class = ErrorClass.DEFERRED


class ProviderClosedError(ModelUnavailableError):
    """The provider refuses us as such: the credential is not accepted, or its spend limit is reached."""


class ProviderPausedError(ModelUnavailableError):
    """Calls to this provider are paused; no attempt is burnt."""

    def __init__(self, provider: str, reason: str, *, retry_after_seconds: float) -> None:
        super().__init__(f"calls to {provider} are paused: {reason}", retry_after_seconds=retry_after_seconds)


class BudgetSpentError(ModelUnavailableError):
    """The tenant's tokens of the day are spent; no attempt is burnt."""

    def __init__(self, tokens_per_day: int, *, retry_after_seconds: float) -> None:
        text = f"the day's {tokens_per_day} tokens are spent or set aside"
        super().__init__(text, retry_after_seconds=retry_after_seconds)


class InvalidOutputError(ModelError):
    """The model answered, but not in the shape it was asked for."""

    error_class = ErrorClass.INVALID_OUTPUT


class ModelRefusedError(ModelError):
    """The model or its provider refuses this request; trying again will not help."""

    error_class = ErrorClass.PERMANENT
