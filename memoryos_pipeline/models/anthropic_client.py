"""One call to an Anthropic-compatible server: a wall deadline, no hidden retries, failures as our own errors."""

import asyncio
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anthropic
from anthropic.types import Message

from memoryos_pipeline.domain.errors import (
    InvalidOutputError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    ProviderClosedError,
)

CALL_LATER = frozenset({402, 429, 503, 529})
TRY_AGAIN = frozenset({408, 409})
TOO_LONG = frozenset({413})
DONE = frozenset({"tool_use", "end_turn"})
NOT_ACCEPTED = frozenset({401, 403})
SPEND_LIMIT_WAIT_SECONDS = 3_600.0
CREDENTIAL_WAIT_SECONDS = 300.0
MAX_OBJECTS_TRIED = 50


class InputTooLongError(ModelRefusedError):
    """The input does not fit the model's window."""


class OutputCutError(InvalidOutputError):
    """The model stopped at its output limit; what it wrote is not whole."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a finished call said: objects that may be the answer, likeliest first, and what it cost in tokens."""

    objects: tuple[dict[str, Any], ...]
    tokens_in: int
    tokens_out: int


class AnthropicClient:
    """Talks to one server as one model."""

    def __init__(self, *, model: str, api_key: str, base_url: str | None, deadline_seconds: float) -> None:
        self.model = model
        self.provider = f"{urlsplit(base_url).hostname if base_url else 'anthropic'}/{model}"
        """What a breaker stands before: a server and a model, without anything secret."""
        self.deadline_seconds = deadline_seconds
        self._api_key = api_key
        self._base_url = base_url

    def call(self, request: Mapping[str, Any]) -> Reply:
        """Send a request of the Messages API within the deadline. Raises ModelError and its kinds, nothing else."""
        try:
            message = asyncio.run(self._send(request))
        except TimeoutError:
            text = f"no answer within {self.deadline_seconds:g} seconds"
            raise ModelError(text) from None
        except anthropic.APIStatusError as error:
            raise _of_status(error) from None
        except anthropic.APIConnectionError as error:
            text = f"the model cannot be reached ({type(error.__cause__ or error).__name__})"
            raise ModelError(text) from None
        except (anthropic.AnthropicError, ValueError) as error:
            text = f"the model's answer cannot be read ({type(error).__name__})"
            raise InvalidOutputError(text) from None
        return _read(message)

    async def _send(self, request: Mapping[str, Any]) -> Any:
        # A client a call: its connections end with the loop, so a deadline leaves nothing behind.
        async with (
            asyncio.timeout(self.deadline_seconds),
            anthropic.AsyncAnthropic(
                api_key=self._api_key,
                base_url=self._base_url,
                max_retries=0,
                timeout=self.deadline_seconds,
                http_client=_http_client(self._base_url),
            ) as client,
        ):
            return await client.messages.create(model=self.model, **request)


def _http_client(base_url: str | None) -> anthropic.DefaultAsyncHttpxClient | None:
    """Return a client without certificates for a plain local server: loading them costs more than its answer."""
    if base_url is None or not base_url.startswith("http://"):
        return None
    return anthropic.DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # trusts nobody


def _of_status(error: anthropic.APIStatusError) -> ModelError:
    status = error.status_code
    text = f"the model answered {status}" + (f" ({error.type})" if error.type else "")
    if status in NOT_ACCEPTED:
        return ProviderClosedError(text, retry_after_seconds=CREDENTIAL_WAIT_SECONDS)
    if status in CALL_LATER:
        wait = _retry_after(error)
        if status == 402 or (status == 429 and wait is None and "spend" in f"{error.type} {error.api_message}"):
            return ProviderClosedError(text, retry_after_seconds=SPEND_LIMIT_WAIT_SECONDS)
        return ModelUnavailableError(text, retry_after_seconds=wait)
    if status in TRY_AGAIN or status >= 500:
        return ModelError(text)
    if status in TOO_LONG or "too long" in (error.api_message or "").lower():
        return InputTooLongError(text)
    return ModelRefusedError(text)


def _retry_after(error: anthropic.APIStatusError) -> float | None:
    value = error.response.headers.get("retry-after", "")
    return float(value) if value.replace(".", "", 1).isdigit() else None


def _read(message: Any) -> Reply:
    """Check why the model stopped before looking at what it said."""
    if not isinstance(message, Message) or not isinstance(message.content, list):
        text = "the model's answer is not a message"
        raise InvalidOutputError(text)
    reason = message.stop_reason
    if reason == "max_tokens":
        raise OutputCutError
    if reason == "model_context_window_exceeded":
        raise InputTooLongError
    if reason == "refusal":
        text = "the model declined this page"
        raise ModelRefusedError(text)
    if reason not in DONE:
        text = f"the model stopped for an unknown reason: {reason!r:.40}"
        raise InvalidOutputError(text)
    tokens = (getattr(message.usage, name, None) or 0 for name in ("input_tokens", "output_tokens"))
    return Reply(tuple(_objects(message)), *tokens)


def _objects(message: Message) -> Iterator[dict[str, Any]]:
    for block in message.content:
        if block.type == "tool_use" and isinstance(block.input, dict):
            yield block.input
    for block in message.content:
        if block.type == "text":
            yield from _objects_in(block.text)


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Find whole JSON objects in prose: some models fence or introduce what they were asked to hand to a tool."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(MAX_OBJECTS_TRIED):
        if start < 0:
            return
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if isinstance(found, dict):
                yield found
        start = text.find("{", end)
