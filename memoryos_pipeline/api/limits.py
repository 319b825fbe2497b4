"""Bounds of a request body, before anything reads it: size, also after gzip, and time. Pure ASGI."""

import asyncio
import zlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_pipeline.api.errors import error_response

MAX_BODY_BYTES = 8 * 1024 * 1024
BODY_SECONDS = 30.0
"""A body that takes longer than this to arrive is given up."""
GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS


class RefusedBodyError(Exception):
    """This body is not read on; carries the answer's status, code and sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class BodyLimits:
    """Reads the whole body within its bounds and hands it on in one piece, unpacked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        try:
            body = await _read_body(scope, receive)
        except RefusedBodyError as refused:
            response = error_response(refused.status, refused.code, refused.message, "body")
            await response(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


async def _read_body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the body, unpacked, or None when the caller has gone. Raises RefusedBodyError."""
    headers = dict(scope["headers"])
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding not in (b"identity", b"gzip"):
        raise RefusedBodyError(415, "unsupported_encoding", "send the body plain or with gzip")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:18]) > MAX_BODY_BYTES:
        raise _too_large()
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        packed = message.get("body", b"")
    else:
        packed = await _read_rest(message, receive)
    if packed is None or encoding == b"identity":
        return _within_limit(packed)
    return _unpack(packed)


def _within_limit(body: bytes | None) -> bytes | None:
    if body is not None and len(body) > MAX_BODY_BYTES:
        raise _too_large()
    return body


async def _read_rest(message: Message, receive: Receive) -> bytes | None:
    chunks, size_bytes = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while message["type"] == "http.request":
                chunks.append(message.get("body", b""))
                size_bytes += len(chunks[-1])
                if size_bytes > MAX_BODY_BYTES:
                    raise _too_large()
                if not message.get("more_body", False):
                    return b"".join(chunks)
                message = await receive()
    except TimeoutError:
        raise RefusedBodyError(408, "body_timeout", "the body did not arrive in time") from None
    return None


def _unpack(packed: bytes) -> bytes:
    unpacked = bytearray()
    while packed:
        stream = zlib.decompressobj(GZIP_WINDOW_BITS)
        try:
            unpacked += stream.decompress(packed, MAX_BODY_BYTES + 1 - len(unpacked))
        except zlib.error:
            raise RefusedBodyError(400, "invalid_gzip", "the body is not valid gzip") from None
        if len(unpacked) > MAX_BODY_BYTES:
            raise _too_large()
        if not stream.eof:
            raise RefusedBodyError(400, "invalid_gzip", "the gzip body ends too early")
        packed = stream.unused_data
    return bytes(unpacked)


def _too_large() -> RefusedBodyError:
    return RefusedBodyError(413, "body_too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
