"""One log line a request: route, status, duration; never a path, a query, a header or a body. Pure ASGI."""

import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_pipeline.domain.ids import mint_id

QUIET = frozenset({"/livez", "/readyz"})
REQUEST_ID_HEADER = b"x-request-id"

log = structlog.stdlib.get_logger(__name__)


class RequestLog:
    """Gives each request an id of ours, binds it to whatever is logged meanwhile, and answers it as a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, status, started = mint_id().hex, 500, time.monotonic()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID_HEADER, request_id.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                _note(scope, status, time.monotonic() - started)


def _note(scope: Scope, status: int, seconds: float) -> None:
    if scope["path"] in QUIET and status < 500:
        return
    route = getattr(scope.get("route"), "path", "unmatched")
    log.info(
        "request_answered", method=scope["method"], route=route, status=status, duration_ms=round(seconds * 1000, 1)
    )
