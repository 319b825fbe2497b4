"""The ledger of decisions over HTTP: listed, shown one by one, and taken back."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.knowledge import Decision
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.readmodels.verdicts import Filter, list_verdicts, read_verdict
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.undo_verdict import undo_verdict
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["verdicts"])
Reader = Annotated[Caller, Depends(require("read"))]
Writer = Annotated[Caller, Depends(require("ingest"))]
Answer = dict[str, Any]


@router.get("/verdicts")
async def get_verdicts(
    request: Request, caller: Reader, user_id: str | None = None, agent_id: str | None = None,
    decision: Decision | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Answer:  # fmt: skip
    """List decisions, the latest first: both statements, who decided by what, and why."""
    named = {"user_id": user_id, "agent_id": agent_id}
    gated = {name: gate_id(value, name) for name, value in named.items() if value is not None}
    chosen = Filter(**gated, decision=decision)

    def read(parts: Parts) -> Answer:
        with parts.database.transaction(caller.tenant_id) as connection:
            return {"verdicts": list_verdicts(connection, caller.tenant_id, chosen, limit=limit)}

    return await run_in_threadpool(read, request.app.state.parts)


@router.get("/verdicts/{verdict_id}")
async def get_verdict(request: Request, caller: Reader, verdict_id: UUID) -> Answer:
    """Return one decision with its evidence. 404 when it is unknown."""

    def read(parts: Parts) -> Answer:
        with parts.database.transaction(caller.tenant_id) as connection:
            found = read_verdict(connection, caller.tenant_id, verdict_id)
        if found is None:
            raise NotFoundError
        return found

    return await run_in_threadpool(read, request.app.state.parts)


@router.post("/verdicts/{verdict_id}/undo")
async def undo(request: Request, caller: Writer, verdict_id: UUID) -> Answer:
    """Take a decision back: the rows it changed are as they were, and what was said stands beside them.

    `undone_by` is the decision that did so; undoing that one brings the first back. 409 when a later decision
    stands on it, when it was undone already, or when it changed no row.
    """
    parts = request.app.state.parts
    undone_by = await run_in_threadpool(undo_verdict, parts, caller.tenant_id, verdict_id)
    return {"verdict_id": verdict_id, "undone_by": undone_by}
