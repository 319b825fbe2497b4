"""Who is calling: an API key as `Authorization: Bearer` or `X-API-Key`. The tenant comes only from the key."""

import time
from collections.abc import Callable

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.errors import ForbiddenError
from memoryos_pipeline.domain.errors import UnknownKeyError
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import Caller, authenticate, key_digest

CACHE_SECONDS = 10.0
"""A revoked key stops working within this time."""


class Authenticator:
    """Looks keys up in the database and remembers the answer for ten seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[float, Caller]] = {}

    async def caller(self, key: str) -> Caller:
        """Return who a key belongs to. Raises UnknownKeyError."""
        digest = key_digest(key)
        found = self._known.get(digest)
        if found and found[0] > time.monotonic():
            return found[1]
        caller = await run_in_threadpool(authenticate, self._database, key)
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[digest] = (time.monotonic() + CACHE_SECONDS, caller)
        return caller


def require(scope: str) -> Callable[[Request], object]:
    """Return a FastAPI dependency that yields the Caller, or refuses: 401 unknown key, 403 scope missing."""

    async def dependency(request: Request) -> Caller:
        authenticator: Authenticator = request.app.state.authenticator
        caller = await authenticator.caller(_presented_key(request))
        if scope not in caller.scopes:
            raise ForbiddenError(scope)
        return caller

    return dependency


def _presented_key(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
    if not key:
        raise UnknownKeyError
    return key
