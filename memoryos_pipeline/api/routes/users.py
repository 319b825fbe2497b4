"""Erasing a user over HTTP."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.stages.erase_user import erase_user
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["users"])
Eraser = Annotated[Caller, Depends(require("erase"))]


@router.delete("/users/{user_id:path}")
async def delete_user(request: Request, caller: Eraser, user_id: str) -> dict[str, Any]:
    """Erase a user: answered only when nothing of them is left. Recording for them answers 410 from then on."""
    return await run_in_threadpool(_erase, request.app.state.parts, caller.tenant_id, user_id)


def _erase(parts: Parts, tenant_id: UUID, user_id: str) -> dict[str, Any]:
    receipt = erase_user(parts.database, tenant_id, user_id, hot_copies=parts.hot_copies)
    return {"receipt_id": receipt.receipt_id, "rows_removed": receipt.rows_removed}
