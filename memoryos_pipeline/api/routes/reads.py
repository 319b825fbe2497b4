"""Reading a memory over HTTP: the tiers page by page, one thing with where it came from. Reads never write."""

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AwareDatetime
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.domain.errors import InvalidTurnError
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.readmodels.views import (
    LISTINGS,
    MAX_ROWS,
    Selection,
    list_rows,
    read_knowledge,
    read_turn,
)
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["read"])
Reader = Annotated[Caller, Depends(require("read"))]
Answer = dict[str, Any]
AS_OF = Query(description="Read turns, pages or knowledge as they were at this moment (ISO 8601 with an offset).")
CURSOR = Query(description="`cursor` of the answer before; leave it out to begin.")


class Asked:
    """What every listing may be asked: of whom, from where on, how much."""

    def __init__(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        cursor: Annotated[str | None, CURSOR] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
        as_of: Annotated[AwareDatetime | None, AS_OF] = None,
    ) -> None:
        self.user_id = user_id
        self.agent_id = agent_id
        self.cursor = cursor
        self.limit = limit
        self.as_of = as_of

    def selection(self, tenant_id: UUID, equal: dict[str, str | None]) -> Selection:
        """Return what to select. Raises InvalidTurnError naming a filter that cannot match anything."""
        named = {"user_id": self.user_id, "agent_id": self.agent_id, **equal}
        gated = {name: gate_id(value, name) for name, value in named.items() if value is not None}
        return Selection(
            tenant_id,
            user_id=gated.pop("user_id", None),
            agent_id=gated.pop("agent_id", None),
            equal=gated,
            as_of=self.as_of,
        )


Filters = Annotated[Asked, Depends()]


@router.get("/turns")
async def get_turns(
    request: Request,
    caller: Reader,
    asked: Filters,
    conversation_id: str | None = None,
    tier: str | None = None,
) -> Answer:
    """List turns verbatim, oldest first within a user and agent."""
    return await _list(request, caller, asked, view="turns", conversation_id=conversation_id, tier=tier)


@router.get("/pages")
async def get_pages(
    request: Request,
    caller: Reader,
    asked: Filters,
    conversation_id: str | None = None,
    tier: str | None = None,
) -> Answer:
    """List pages with tier, summary and heat as it is right now."""
    return await _list(request, caller, asked, view="pages", conversation_id=conversation_id, tier=tier)


@router.get("/segments")
async def get_segments(request: Request, caller: Reader, asked: Filters) -> Answer:
    """List themes with their linear heat."""
    return await _list(request, caller, asked, view="segments")


@router.get("/knowledge")
async def get_knowledge(
    request: Request, caller: Reader, asked: Filters, history: bool = False, kind: str | None = None
) -> Answer:
    """List what is known, with weight and sources; `history=true` adds what was superseded, closed or forgotten."""
    view = "knowledge_history" if history else "knowledge"
    return await _list(request, caller, asked, view=view, kind=kind)


@router.get("/links")
async def get_links(request: Request, caller: Reader, asked: Filters) -> Answer:
    """List the links between statements."""
    return await _list(request, caller, asked, view="links")


@router.get("/profile")
async def get_profile(request: Request, caller: Reader, asked: Filters) -> Answer:
    """List the traits of a profile, each with its evidence."""
    return await _list(request, caller, asked, view="profile")


@router.get("/rollups")
async def get_rollups(request: Request, caller: Reader, asked: Filters, period: str | None = None) -> Answer:
    """List what each day was about, and the whole (`period=all`), where the policy keeps rollups."""
    return await _list(request, caller, asked, view="rollups", period=period)


@router.get("/conversations")
async def get_conversations(request: Request, caller: Reader, asked: Filters) -> Answer:
    """List conversations and how far each has travelled."""
    return await _list(request, caller, asked, view="conversations")


@router.get("/turns/{turn_id}")
async def get_turn(request: Request, caller: Reader, turn_id: UUID) -> Answer:
    """Return one turn, and the knowledge that cites it."""
    return await _one(request, caller, turn_id, read_turn)


@router.get("/knowledge/{knowledge_id}")
async def get_one_knowledge(request: Request, caller: Reader, knowledge_id: UUID) -> Answer:
    """Return one statement with its source turns, versions, notes, links and the verdicts about it."""
    return await _one(request, caller, knowledge_id, read_knowledge)


async def _list(request: Request, caller: Caller, asked: Asked, *, view: str, **equal: str | None) -> Answer:
    selection = asked.selection(caller.tenant_id, equal)
    if asked.as_of is not None and LISTINGS[view].past is None:
        raise InvalidTurnError("as_of", "turns, pages and knowledge can be read as of a moment, nothing else")

    def read(connection: Connection) -> Answer:
        found = list_rows(connection, LISTINGS[view], selection, cursor=asked.cursor, limit=asked.limit)
        return {view.removesuffix("_history"): found.rows, "cursor": found.cursor}

    return await run_in_threadpool(_read, request.app.state.parts, caller.tenant_id, read)


async def _one(
    request: Request, caller: Caller, wanted: UUID, read: Callable[[Connection, UUID, UUID], Answer]
) -> Answer:
    def read_it(connection: Connection) -> Answer:
        return read(connection, caller.tenant_id, wanted)

    return await run_in_threadpool(_read, request.app.state.parts, caller.tenant_id, read_it)


def _read(parts: Parts, tenant_id: UUID, read: Callable[[Connection], Answer]) -> Answer:
    with parts.database.transaction(tenant_id) as connection:
        return read(connection)
