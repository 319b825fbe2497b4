"""HTTP requests with one retry policy: a keyed request is repeated after an unknown outcome, others never."""

import time
from collections.abc import Callable
from json import dumps
from types import TracebackType
from typing import Any, Self

import httpx

from memoryos_pipeline.client.errors import (
    MemoryClientError,
    NoAnswerError,
    UnavailableError,
    UnsendableError,
    error_of,
)

ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
TIMEOUT_SECONDS = 30.0


class Transport:
    """One kept connection pool to the API of one tenant. Not to be shared across a fork."""

    def __init__(self, api_url: str, api_key: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._http = httpx.Client(
            base_url=api_url.rstrip("/"),
            headers={"authorization": f"Bearer {api_key}", "content-type": "application/json"},
            timeout=httpx.Timeout(TIMEOUT_SECONDS, connect=5.0),
            trust_env=False,
        )
        self._pause = pause

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self, method: str, path: str, *, json: Any = None, params: dict[str, Any] | None = None, repeat: bool = True
    ) -> Any:
        """Send a request and return its JSON.

        `repeat` says that sending it twice equals sending it once (reads, and writes that carry their own keys):
        it is then sent up to five times while no answer or a 503 comes. Raises ApiError or NoAnswerError.
        """
        query = {name: value for name, value in (params or {}).items() if value is not None}
        attempt = 1 if repeat else ATTEMPTS
        while True:
            try:
                return self._send(method, path, json=json, params=query)
            except (NoAnswerError, UnavailableError) as error:
                if attempt >= ATTEMPTS or not _worth_repeating(error):
                    raise
            self._pause(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)))
            attempt += 1

    def _send(self, method: str, path: str, *, json: Any, params: dict[str, Any]) -> Any:
        content = None if json is None else json_bytes(json)
        try:
            response = self._http.request(method, path, content=content, params=params)
        except httpx.TransportError as error:
            raise NoAnswerError(
                f"no answer from {self._http.base_url} to {method} {path} ({type(error).__name__}); is it running?"
            ) from error
        if response.is_success:
            return response.json() if response.content else None
        raise error_of(response.status_code, _json_or_none(response))


def _worth_repeating(error: MemoryClientError) -> bool:
    return isinstance(error, NoAnswerError) or (isinstance(error, UnavailableError) and error.status == 503)


def json_bytes(value: Any) -> bytes:
    """Return a value as the JSON that is sent. Raises UnsendableError."""
    try:
        return dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise UnsendableError(f"the request is not JSON: {type(error).__name__}") from None


def _json_or_none(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
