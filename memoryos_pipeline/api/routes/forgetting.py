"""Forgetting over HTTP: what a sweep would take now, without taking anything."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.domain.turn_body import DEFAULT_AGENT
from memoryos_pipeline.stages.forget import preview_forgetting
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.forgetting import list_due
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["knowledge"])
Reader = Annotated[Caller, Depends(require("read"))]


@router.get("/forgetting")
async def get_forgetting(
    request: Request,
    caller: Reader,
    user_id: str,
    agent_id: str = DEFAULT_AGENT,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    """Return what would be forgotten and deleted now, and whether the brake or a hold stops it. A dry run."""
    scope = scope_id(caller.tenant_id, gate_id(user_id, "user_id"), gate_id(agent_id, "agent_id"))

    def preview(parts: Parts) -> dict[str, Any]:
        with parts.database.transaction(caller.tenant_id) as connection:
            found = preview_forgetting(parts, connection, caller.tenant_id, scope)
            due = list_due(connection, caller.tenant_id, scope, limit=limit)
        standing = found.assessment
        return {
            "live": standing.live_rows,
            "would_forget": standing.due_rows,
            "would_delete": standing.purge_rows,
            "braked": found.braked,
            "on_hold": standing.on_hold,
            "knowledge": due,
        }

    return await run_in_threadpool(preview, request.app.state.parts)
