"""Ingest over HTTP: turns in, receipts out, conversations closed. 202 means committed."""

import json
from collections.abc import Sequence
from json.encoder import encode_basestring as quote
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.api.json_body import load_json
from memoryos_pipeline.api.schemas import CONVERSATION, RECEIPT_QUERY, RECEIPTS, TURN, TURNS, answers, takes
from memoryos_pipeline.domain.ids import scope_id
from memoryos_pipeline.domain.turn_body import parse_conversation_name, parse_receipt_query, parse_turns
from memoryos_pipeline.domain.turns import Receipt
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.stages.find_receipts import find_receipts
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_turns import close_conversation, record_turns
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["ingest"])
Ingester = Annotated[Caller, Depends(require("ingest"))]


@router.post(
    "/turns",
    status_code=202,
    response_class=Response,
    openapi_extra=takes({"oneOf": [TURN, TURNS]}),
    responses=answers(202, RECEIPTS, "Every turn is committed."),
)
async def post_turns(request: Request, caller: Ingester) -> Response:
    """Record one turn, or 1 to 1,000 of them, all or none. Sending a turn again gives its first receipt."""
    body = await request.body()
    return await run_in_threadpool(_record, request.app.state.parts, caller.tenant_id, body)


@router.post(
    "/receipts",
    response_class=Response,
    openapi_extra=takes(RECEIPT_QUERY),
    responses=answers(200, RECEIPTS, "The receipts that exist; turns that are not recorded are left out."),
)
async def post_receipts(request: Request, caller: Ingester) -> Response:
    """Tell which of the named turns of a conversation are recorded."""
    body = await request.body()
    return await run_in_threadpool(_find, request.app.state.parts, caller.tenant_id, body)


@router.post(
    "/conversations/close",
    status_code=202,
    response_class=Response,
    openapi_extra=takes(CONVERSATION),
    responses=answers(202, CONVERSATION, "The conversation is closed; its turns will be sealed into pages."),
)
async def post_close(request: Request, caller: Ingester) -> Response:
    """Close a conversation: nothing more is expected in it. A new turn opens it again."""
    body = await request.body()
    return await run_in_threadpool(_close, request.app.state.parts, caller.tenant_id, body)


def _record(parts: Parts, tenant_id: UUID, body: bytes) -> Response:
    turns = parse_turns(load_json(body))
    receipts = record_turns(
        parts.database, tenant_id, turns, policy=parts.policy, max_attempts=parts.max_attempts,
        hot_copies=parts.hot_copies,
    )  # fmt: skip
    reach("after_commit_before_answer", "turns")
    return _receipts_response(receipts, status=202)


def _find(parts: Parts, tenant_id: UUID, body: bytes) -> Response:
    name, client_turn_ids = parse_receipt_query(load_json(body))
    return _receipts_response(find_receipts(parts.database, tenant_id, name, client_turn_ids), status=200)


def _close(parts: Parts, tenant_id: UUID, body: bytes) -> Response:
    name = parse_conversation_name(load_json(body))
    close_conversation(
        parts.database,
        tenant_id,
        scope_id=scope_id(tenant_id, name.user_id, name.agent_id),
        conversation_id=name.conversation_id,
        max_attempts=parts.max_attempts,
    )
    return _json_response(
        {"user_id": name.user_id, "agent_id": name.agent_id, "conversation_id": name.conversation_id}, status=202
    )


def receipts_json(receipts: Sequence[Receipt]) -> str:
    """Return the answer that carries receipts: `{"turns": [...], "position": N}`, position null when there are none."""
    position = max((receipt.position for receipt in receipts), default=None)
    return f'{{"turns":[{",".join(map(_receipt_json, receipts))}],"position":{json.dumps(position)}}}'


def _receipts_response(receipts: Sequence[Receipt], *, status: int) -> Response:
    return Response(receipts_json(receipts), status_code=status, media_type="application/json")


def _receipt_json(receipt: Receipt) -> str:
    # Written out: building a dictionary for each of a thousand receipts costs three times as much.
    return (
        f'{{"client_turn_id":{quote(receipt.client_turn_id)},"turn_id":"{receipt.turn_id}",'
        f'"conversation_id":{quote(receipt.conversation_id)},"seq":{receipt.seq},"position":{receipt.position},'
        f'"body_sha256":"{receipt.body_sha256.hex()}","duplicate":{"true" if receipt.duplicate else "false"}}}'
    )


def _json_response(value: object, *, status: int) -> Response:
    return Response(json.dumps(value, ensure_ascii=False), status_code=status, media_type="application/json")
