"""How far a conversation is, and reads that wait until what their caller has written can be read."""

from typing import Annotated, Any, Protocol
from uuid import UUID

import anyio
from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.ids import conversation_id, scope_id
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.domain.turn_body import DEFAULT_AGENT
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import Caller
from memoryos_pipeline.store.watermarks import Behind, Watermarks, read_behind, read_watermarks

router = APIRouter(prefix="/v1", tags=["pipeline"])
Reader = Annotated[Caller, Depends(require("read"))]

MAX_POSITION = 2**63 - 1
MAX_WAIT_MS = 5_000
POLL_SECONDS = 0.05


class Waiting(Protocol):
    """What a read says of how fresh it must be."""

    user_id: str
    agent_id: str
    min_position: int | None
    max_wait_ms: int


# A conversation is named by its caller, who may like slashes.
@router.get("/conversations/{external_id:path}/watermarks")
async def get_watermarks(
    request: Request, caller: Reader, external_id: str, user_id: str, agent_id: str = DEFAULT_AGENT
) -> dict[str, Any]:
    """Tell through which turn a conversation is recorded, sealed, summarized and so on, and what each waits for.

    Each number is a contiguous prefix: everything up to that seq has passed the stage. Turns in the hot buffer
    are searchable as they stand and pass `sealed` when they leave it.
    """
    names = {"user_id": user_id, "agent_id": agent_id, "conversation_id": external_id}
    named = {field: gate_id(value, field) for field, value in names.items()}
    scope = scope_id(caller.tenant_id, named["user_id"], named["agent_id"])
    conversation = conversation_id(scope, named["conversation_id"])
    found = await run_in_threadpool(_read, request.app.state.parts, caller.tenant_id, conversation)
    if found is None:
        raise NotFoundError(f"{named['user_id']!r} has no conversation {external_id!r} with {named['agent_id']!r}")
    hot = found.through["recorded"] - found.through["sealed"]
    return {
        **named, **found.through, "hot_turns": hot, "sealing_owed": found.sealing_owed and hot > 0,
        "waits_for": dict(found.waits_for),
    }  # fmt: skip


async def wait_for_position(parts: Parts, tenant_id: UUID, asked: Waiting) -> dict[str, Any]:
    """Wait, at most `max_wait_ms`, until every turn up to `min_position` is recorded and, once sealed, indexed.

    Returns `{"behind": None}`, or what is still missing; nothing when no position was asked for.
    """
    if asked.min_position is None:
        return {}
    scope = scope_id(tenant_id, asked.user_id, asked.agent_id)
    deadline = anyio.current_time() + asked.max_wait_ms / 1000
    while True:
        behind = await run_in_threadpool(_behind, parts, tenant_id, scope, asked.min_position)
        left = deadline - anyio.current_time()
        if (behind.is_recorded and not behind.unindexed_turns) or left <= 0:
            return {"behind": _told(behind, asked.min_position)}
        await anyio.sleep(min(POLL_SECONDS, left))


def _read(parts: Parts, tenant_id: UUID, conversation: UUID) -> Watermarks | None:
    with parts.database.transaction(tenant_id) as connection:
        return read_watermarks(connection, tenant_id, conversation)


def _behind(parts: Parts, tenant_id: UUID, scope: UUID, position: int) -> Behind:
    with parts.database.transaction(tenant_id) as connection:
        return read_behind(connection, tenant_id, scope, position=position)


def _told(behind: Behind, min_position: int) -> dict[str, Any] | None:
    if behind.is_recorded and not behind.unindexed_turns:
        return None
    if behind.is_recorded:
        missing = f"{behind.unindexed_turns} turns are found by their words, not yet by their meaning"
    else:
        missing = f"position {min_position} is not recorded yet"
    return {
        "recorded": behind.is_recorded,
        "position": behind.position,
        "unindexed_turns": behind.unindexed_turns,
        "missing": missing,
    }
