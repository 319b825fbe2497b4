"""What is hot in one conversation: the turns a context shows verbatim."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.domain.turn_body import DEFAULT_AGENT
from memoryos_pipeline.recall.hot_tail import read_tail
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.found import FoundTurn
from memoryos_pipeline.store.search import ScopeKey
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["read"])
Reader = Annotated[Caller, Depends(require("read"))]


# A conversation is named by its caller, who may like slashes.
@router.get("/conversations/{external_id:path}/hot")
async def get_hot(
    request: Request, caller: Reader, external_id: str, user_id: str, agent_id: str = DEFAULT_AGENT
) -> dict[str, Any]:
    """List the turns of a conversation that are on no page yet, oldest first; none for an unknown conversation."""
    parts: Parts = request.app.state.parts
    names = {"user_id": user_id, "agent_id": agent_id, "conversation_id": external_id}
    named = {field: gate_id(value, field) for field, value in names.items()}
    key = ScopeKey(caller.tenant_id, scope_id(caller.tenant_id, named["user_id"], named["agent_id"]))
    turns = await run_in_threadpool(read_tail, parts, key, named["conversation_id"])
    return {**named, "turns": [_told(turn) for turn in reversed(turns)]}


def _told(turn: FoundTurn) -> dict[str, Any]:
    return {
        "seq": turn.seq,
        "turn_id": str(turn.turn_id),
        "client_turn_id": turn.client_turn_id,
        "role": turn.role,
        "speaker": turn.speaker,
        "content": turn.content,
        "lang": turn.lang,
        "occurred_at": turn.occurred_at.isoformat(),
    }
