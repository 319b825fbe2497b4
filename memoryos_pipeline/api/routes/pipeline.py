"""How far the pipeline is, and the change feed."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.readmodels.system_state import read_system_state
from memoryos_pipeline.readmodels.views import MAX_ROWS, read_events, read_pipeline, read_tiers
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["pipeline"])
Reader = Annotated[Caller, Depends(require("read"))]


@router.get("/pipeline")
async def get_pipeline(request: Request, caller: Reader) -> dict[str, Any]:
    """Tell what is owed, by kind, what holds it up, and where the change feed is safe to read up to."""
    return await run_in_threadpool(_pipeline, request.app.state.parts, caller.tenant_id)


@router.get("/tiers")
async def get_tiers(request: Request, caller: Reader, user_id: str | None = None) -> dict[str, Any]:
    """Count what lies in each tier, of the tenant or of one user."""
    named = None if user_id is None else gate_id(user_id, "user_id")
    return await run_in_threadpool(_tiers, request.app.state.parts, caller.tenant_id, named)


@router.get("/events")
async def get_events(
    request: Request,
    caller: Reader,
    after: Annotated[str | None, Query(description="`cursor` of the answer before; leave it out to begin.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
) -> dict[str, Any]:
    """Return what happened next. Nothing that commits late is skipped; ask again with the cursor for more."""
    return await run_in_threadpool(_events, request.app.state.parts, caller.tenant_id, after, limit)


def _pipeline(parts: Parts, tenant_id: UUID) -> dict[str, Any]:
    with parts.database.transaction(tenant_id) as connection:
        return {**read_pipeline(connection, tenant_id), **read_system_state(connection, tenant_id)}


def _tiers(parts: Parts, tenant_id: UUID, user_id: str | None) -> dict[str, Any]:
    with parts.database.transaction(tenant_id) as connection:
        return {"tiers": read_tiers(connection, tenant_id, user_id=user_id)}


def _events(parts: Parts, tenant_id: UUID, after: str | None, limit: int) -> dict[str, Any]:
    with parts.database.transaction(tenant_id) as connection:
        found = read_events(connection, tenant_id, after=after, limit=limit)
    return {"events": found.rows, "cursor": found.cursor}
