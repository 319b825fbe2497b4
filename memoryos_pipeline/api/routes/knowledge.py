"""Changing knowledge by decision: forgetting, bringing back what was forgotten, pinning what must stay."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, field_validator
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.api.json_body import JsonRoute
from memoryos_pipeline.domain.text_gate import gate_text
from memoryos_pipeline.stages.forget_statement import forget_statement
from memoryos_pipeline.stages.pin import pin_knowledge
from memoryos_pipeline.stages.restore import restore_knowledge
from memoryos_pipeline.stages.revise_statement import revise_statement
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["knowledge"], route_class=JsonRoute)
Writer = Annotated[Caller, Depends(require("ingest"))]
MAX_STATEMENT_BYTES = 8 * 1024


class RevisionBody(BaseModel):
    """New words for a statement."""

    model_config = ConfigDict(extra="forbid")

    content: str

    @field_validator("content")
    @classmethod
    def _told(cls, value: str) -> str:
        return gate_text(value, "content", max_bytes=MAX_STATEMENT_BYTES)


@router.delete("/knowledge/{knowledge_id}")
async def forget(request: Request, caller: Writer, knowledge_id: UUID) -> dict[str, object]:
    """Forget a live statement, with what it replaced; it can be restored until its grace is over, then it is deleted.

    At once it is in no search, nor is a summary it was learnt from, nor a turn that nothing else is known from.
    `forgotten` is false when it was forgotten already. 404 when it is unknown, or history.
    """
    parts = request.app.state.parts
    forgotten = await run_in_threadpool(forget_statement, parts, caller.tenant_id, knowledge_id)
    return {"knowledge_id": knowledge_id, "forgotten": forgotten}


@router.patch("/knowledge/{knowledge_id}")
async def revise(request: Request, caller: Writer, knowledge_id: UUID, body: RevisionBody) -> dict[str, object]:
    """Let a live statement say something else from now on; what it said becomes history, its sources stay.

    `knowledge_id` is the version that holds now, soon found by its new words; `verdict_id` undoes it. `changed` is
    false when it says that already. 404 when it is unknown, or history; 409 when another live statement says that.
    """
    parts = request.app.state.parts
    revised = await run_in_threadpool(revise_statement, parts, caller.tenant_id, knowledge_id, body.content)
    changed = revised.verdict_id is not None
    return {"knowledge_id": revised.knowledge_id, "verdict_id": revised.verdict_id, "changed": changed}


@router.post("/knowledge/{knowledge_id}/restore")
async def restore(request: Request, caller: Writer, knowledge_id: UUID) -> dict[str, object]:
    """Bring a forgotten statement back within its grace period, with the turns it cites; it can be found soon after.

    `restored` is false when it was not forgotten. 404 when it is unknown, or purged already.
    """
    parts = request.app.state.parts
    restored = await run_in_threadpool(restore_knowledge, parts, caller.tenant_id, knowledge_id)
    return {"knowledge_id": knowledge_id, "restored": restored}


@router.put("/knowledge/{knowledge_id}/pin")
async def pin(request: Request, caller: Writer, knowledge_id: UUID) -> dict[str, object]:
    """Keep a live statement whatever its weight. `changed` is false when it was pinned already; 404 when not live."""
    changed = await run_in_threadpool(
        pin_knowledge, request.app.state.parts, caller.tenant_id, knowledge_id, pinned=True
    )
    return {"knowledge_id": knowledge_id, "pinned": True, "changed": changed}


@router.delete("/knowledge/{knowledge_id}/pin")
async def unpin(request: Request, caller: Writer, knowledge_id: UUID) -> dict[str, object]:
    """Let a statement fade from now on. `changed` is false when it was not pinned; 404 when not live."""
    changed = await run_in_threadpool(
        pin_knowledge, request.app.state.parts, caller.tenant_id, knowledge_id, pinned=False
    )
    return {"knowledge_id": knowledge_id, "pinned": False, "changed": changed}
