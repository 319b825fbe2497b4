"""Policies over HTTP: which one is in force and what it means, the versions there were, setting the next one."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.api.json_body import JsonRoute
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.policies_presets import PRESETS, changed, differences, find_preset, settings_of
from memoryos_pipeline.domain.policies_words import describe
from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.set_policy import put_policy
from memoryos_pipeline.store.policies import PolicyRow, find_policy, list_versions
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["policy"], route_class=JsonRoute)
Reader = Annotated[Caller, Depends(require("read"))]
Admin = Annotated[Caller, Depends(require("admin"))]
Answer = dict[str, Any]


class PolicyBody(BaseModel):
    """What to put in force: a preset, and changes to it; without a preset, changes to what is in force."""

    model_config = ConfigDict(extra="forbid")

    user_id: str | None = None
    preset: str | None = None
    settings: dict[str, Any] = {}


@router.get("/policy")
async def get_policy(request: Request, caller: Reader, user_id: str | None = None) -> Answer:
    """Return the policy in force for a user, or for the tenant: its numbers, and what they mean in words."""
    parts: Parts = request.app.state.parts
    return await run_in_threadpool(_read, parts, caller, _gated(user_id))


@router.get("/policy/versions")
async def get_versions(request: Request, caller: Reader, user_id: str | None = None) -> Answer:
    """Return every version of a user's own policy, or of the tenant's, oldest first, each with what it changed."""
    parts: Parts = request.app.state.parts
    return await run_in_threadpool(_versions, parts, caller, _gated(user_id))


@router.get("/policy/presets/{name}")
async def get_preset(_: Request, __: Reader, name: str) -> Answer:
    """Return a preset: its numbers, and what they mean in words."""
    return {"presets": list(PRESETS), **_shown(name, find_preset(name))}


@router.put("/policy")
async def put_next(request: Request, caller: Admin, body: PolicyBody) -> Answer:
    """Put the next version in force for a user or the tenant. What is remembered stays; what follows is new."""
    return await run_in_threadpool(_put, request.app.state.parts, caller, body)


def _read(parts: Parts, caller: Caller, user_id: str | None) -> Answer:
    with parts.database.transaction(caller.tenant_id) as connection:
        found = find_policy(connection, caller.tenant_id, user_id=user_id)
    if found is None:
        return {"in_force_for": "everybody", "version": None, "set_at": None, **_shown("default", parts.policy)}
    return _row(found)


def _versions(parts: Parts, caller: Caller, user_id: str | None) -> Answer:
    with parts.database.transaction(caller.tenant_id) as connection:
        rows = list_versions(connection, caller.tenant_id, user_id=user_id)
    before = [parts.policy, *(row.policy for row in rows)]
    return {
        "versions": [
            {
                "version": row.version,
                "preset": row.preset,
                "set_at": row.created_at,
                "changed": _changes(old, row.policy),
            }
            for old, row in zip(before, rows, strict=False)
        ]
    }


def _put(parts: Parts, caller: Caller, body: PolicyBody) -> Answer:
    user_id = _gated(body.user_id)
    with parts.database.transaction(caller.tenant_id) as connection:
        found = find_policy(connection, caller.tenant_id, user_id=user_id)
    base = found.policy if found else parts.policy
    preset = body.preset or (found.preset if found else "default")
    policy = changed(find_preset(preset) if body.preset else base, body.settings)
    row = put_policy(
        parts.database,
        caller.tenant_id,
        user_id=user_id,
        preset=preset,
        policy=policy,
        max_attempts=parts.max_attempts,
    )
    return {**_row(row), "changed": _changes(base, policy)}


def _row(row: PolicyRow) -> Answer:
    place = "everybody" if row.user_id is None else row.user_id
    return {"in_force_for": place, "version": row.version, "set_at": row.created_at, **_shown(row.preset, row.policy)}


def _shown(preset: str, policy: Policy) -> Answer:
    return {
        "preset": preset,
        "changed_from_preset": _changes(find_preset(preset), policy),
        "words": describe(policy),
        "settings": settings_of(policy),
    }


def _changes(before: Policy, after: Policy) -> dict[str, list[Any]]:
    return {name: list(pair) for name, pair in differences(before, after).items()}


def _gated(user_id: str | None) -> str | None:
    return None if user_id is None else gate_id(user_id, "user_id")
