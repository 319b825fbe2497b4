"""Whether this process lives, and whether it can take turns. The broker is no part of either."""

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.migrate import pending_migrations

router = APIRouter(tags=["health"])
PROBE_THREADS = 2


@router.get("/livez")
async def livez() -> dict[str, str]:
    """Answer as long as the event loop turns."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": "Turns cannot be recorded now; the reason says why."}})
async def readyz(request: Request) -> JSONResponse:
    """Answer 200 when the database answers and its schema is the one this code was written for."""
    readiness: Readiness = request.app.state.readiness
    reason = await readiness.reason()
    if reason:
        return JSONResponse({"status": "unavailable", "reason": reason}, status_code=503)
    return JSONResponse({"status": "ready"})


class Readiness:
    """Asks the database, on threads of its own so that a full pool of workers cannot hide the answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._limiter = CapacityLimiter(PROBE_THREADS)
        self._migrated = False

    async def reason(self) -> str | None:
        """Return why turns cannot be recorded, or None when they can."""
        return await to_thread.run_sync(self._probe, limiter=self._limiter)

    def _probe(self) -> str | None:
        try:
            # A schema never goes back under a running process, so one good answer is enough.
            self._migrated = self._migrated or not pending_migrations(self._database)
            if not self._migrated:
                return "migrations are missing; run memoryos migrate"
            with self._database.across_tenants() as connection:
                read_now(connection)
        except SQLAlchemyError:
            return "the database does not answer"
        return None
