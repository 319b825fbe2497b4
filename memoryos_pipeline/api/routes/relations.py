"""Reading the graph over HTTP: who and what is related, by steps from a name."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AwareDatetime
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.readmodels.relations import Walk, walk_relations
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.entities import normalize_name
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["read"])
Reader = Annotated[Caller, Depends(require("read"))]
MAX_HOPS = 3


@router.get("/relations")
async def get_relations(  # noqa: PLR0913, PLR0917 - one query parameter each
    request: Request, caller: Reader, user_id: str, agent_id: str | None = None, entity: str | None = None,
    hops: Annotated[int, Query(ge=1, le=MAX_HOPS)] = 1, as_of: AwareDatetime | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:  # fmt: skip
    """List relations, from `entity` on (every entity of that name) or all; only a policy with `triples` makes any."""
    walk = Walk(
        gate_id(user_id, "user_id"),
        agent_id=gate_id(agent_id, "agent_id") if agent_id is not None else None,
        name=normalize_name(gate_id(entity, "entity")) if entity is not None else None,
        hops=hops,
        as_of=as_of,
    )

    def read(parts: Parts) -> dict[str, Any]:
        with parts.database.transaction(caller.tenant_id) as connection:
            return {"relations": walk_relations(connection, caller.tenant_id, walk, limit=limit)}

    return await run_in_threadpool(read, request.app.state.parts)
