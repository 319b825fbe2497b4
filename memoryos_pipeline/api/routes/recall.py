"""Recall over HTTP: search, context and answer. Reads write nothing; what was shown is recorded afterwards."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.api.json_body import JsonRoute
from memoryos_pipeline.api.routes.watermarks import MAX_POSITION, MAX_WAIT_MS, wait_for_position
from memoryos_pipeline.domain.ranking_profiles import NAMES
from memoryos_pipeline.domain.text_gate import gate_id, gate_text
from memoryos_pipeline.domain.turn_body import DEFAULT_AGENT, parse_moment
from memoryos_pipeline.domain.turns import NewTurn, Role
from memoryos_pipeline.recall.answer import Answer, answer
from memoryos_pipeline.recall.context import Context, ContextItem, build_context, injected
from memoryos_pipeline.recall.filters import Filters, Tier
from memoryos_pipeline.recall.gather import KINDS
from memoryos_pipeline.recall.past import PastQuestion, search_past
from memoryos_pipeline.recall.results import Result
from memoryos_pipeline.recall.search import Ask, Retrieval, search
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.stages.record_access import Cause, record_access
from memoryos_pipeline.stages.record_turns import record_turns
from memoryos_pipeline.store.found import FoundTurn
from memoryos_pipeline.store.tenants import Caller

router = APIRouter(prefix="/v1", tags=["recall"], route_class=JsonRoute)
Reader = Annotated[Caller, Depends(require("read"))]

MAX_QUERY_BYTES = 16 * 1024


class Question(BaseModel):
    """What every recall request has. `now` is what relative dates are seen from; default: the database's time.

    `profile` is how candidates are ranked; default: as the policy of this memory says.
    `since` and `until` (half-open, by what happened), `tiers` and `speaker` are a gate: only what passes is found, and
    as much of it as was asked for.
    `min_position` is the position of a receipt: the read waits up to `max_wait_ms` for it and says what is `behind`.
    """

    model_config = ConfigDict(extra="forbid")

    user_id: str
    agent_id: str = DEFAULT_AGENT
    query: str
    now: datetime | None = None
    kinds: list[Literal["turn", "knowledge", "page"]] | None = Field(None, min_length=1)
    include_history: bool = False
    since: datetime | None = None
    until: datetime | None = None
    tiers: list[Tier] | None = Field(None, min_length=1)
    speaker: str | None = None
    profile: str | None = Field(None, json_schema_extra={"enum": [*NAMES, None]})
    min_position: int | None = Field(None, ge=0, le=MAX_POSITION)
    max_wait_ms: int = Field(0, ge=0, le=MAX_WAIT_MS)

    @field_validator("user_id", "agent_id")
    @classmethod
    def _named(cls, value: str, info: Any) -> str:
        return gate_id(value, info.field_name)

    @field_validator("query")
    @classmethod
    def _asked(cls, value: str) -> str:
        return gate_text(value, "query", max_bytes=MAX_QUERY_BYTES)

    @field_validator("profile")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in NAMES:
            raise ValueError(f"is none of {', '.join(NAMES)}")
        return value

    @field_validator("now", "since", "until", mode="before")
    @classmethod
    def _moment(cls, value: object, info: ValidationInfo) -> datetime | None:
        return None if value is None else parse_moment(value, str(info.field_name))

    @field_validator("until")
    @classmethod
    def _later(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if value is not None and since is not None and value <= since:
            raise ValueError("must be later than since")
        return value

    @field_validator("speaker")
    @classmethod
    def _speaking(cls, value: str | None) -> str | None:
        return None if value is None else gate_id(value, "speaker")

    def within(self) -> str | None:
        """Return the conversation that results must be from."""
        return None

    def filters(self) -> Filters:
        """Return what results must pass."""
        tiers = None if self.tiers is None else tuple(self.tiers)
        return Filters(self.since, self.until, tiers, self.within(), self.speaker)

    def ask(self, limit: int = 10) -> Ask:
        """Return the question as recall takes it."""
        kinds = tuple(self.kinds) if self.kinds else KINDS
        return Ask(
            self.user_id, self.agent_id, self.query, limit=limit, now=self.now, kinds=kinds,
            include_history=self.include_history, profile=self.profile, filters=self.filters(),
        )  # fmt: skip


class SearchBody(Question):
    """A search, in one conversation when `conversation_id` is given.

    With `as_of` it is one in the past: turns and statements as they were then, ranked by words.
    Results below `min_score` are left out. Higher is better. The range is the profile's: the default and a cosine are
    at most 1, words alone have no bound.
    """

    limit: int = Field(10, ge=1, le=100)
    min_score: float | None = Field(None, allow_inf_nan=False)
    as_of: datetime | None = None
    conversation_id: str | None = None

    @field_validator("conversation_id")
    @classmethod
    def _conversation(cls, value: str | None) -> str | None:
        return None if value is None else gate_id(value, "conversation_id")

    def within(self) -> str | None:
        """Return the conversation that results must be from."""
        return self.conversation_id

    def ask(self, limit: int = 10) -> Ask:
        """Return the question as recall takes it."""
        return replace(super().ask(limit), min_score=self.least())

    def least(self) -> float:
        """Return the lowest score that is wanted."""
        return -math.inf if self.min_score is None else self.min_score

    @field_validator("as_of", mode="before")
    @classmethod
    def _then(cls, value: object) -> datetime | None:
        return None if value is None else parse_moment(value, "as_of")


class ContextBody(Question):
    """A context within a token budget, with the recent turns of `conversation_id` or of the last conversation.

    `only_conversation_id` is the filter that a search calls `conversation_id`. With filters nothing is in the context
    that does not pass, and there is no profile in it.
    """

    token_budget: int = Field(800, ge=50, le=32_000, validation_alias=AliasChoices("token_budget", "max_tokens"))
    conversation_id: str | None = None
    only_conversation_id: str | None = None

    @field_validator("conversation_id", "only_conversation_id")
    @classmethod
    def _conversation(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else gate_id(value, str(info.field_name))

    def within(self) -> str | None:
        """Return the conversation that results must be from."""
        return self.only_conversation_id


class AnswerBody(ContextBody):
    """A question to be answered; with a `conversation_id` both turns are recorded there unless `record` is false."""

    record: bool = True


@router.post("/search")
async def post_search(body: SearchBody, request: Request, caller: Reader) -> JSONResponse:
    """Search hot, warm and cold memory; each result says why (its signals sum to its score) and where it is from."""
    parts: Parts = request.app.state.parts
    behind = await wait_for_position(parts, caller.tenant_id, body)
    if body.as_of is not None:
        return JSONResponse({**await run_in_threadpool(_search_past, parts, caller, body, body.as_of), **behind})
    retrieval = await run_in_threadpool(search, parts, caller.tenant_id, body.ask(body.limit))
    shown = [(result.kind, result.owner_id) for result in retrieval.results]
    content = {**_head(retrieval), **behind, "results": [_result(result) for result in retrieval.results]}
    return JSONResponse(content, background=_afterwards(parts, retrieval, shown, cause="retrieved"))


@router.post("/context")
async def post_context(body: ContextBody, request: Request, caller: Reader) -> JSONResponse:
    """Return prompt-ready text within the token budget, and the items it is made of."""
    parts: Parts = request.app.state.parts
    behind = await wait_for_position(parts, caller.tenant_id, body)
    context = await run_in_threadpool(_build, parts, caller.tenant_id, body)
    background = _afterwards(parts, context.retrieval, injected(context.items), cause="injected")
    return JSONResponse({**_head(context.retrieval), **behind, **_context(context)}, background=background)


@router.post("/answer")
async def post_answer(body: AnswerBody, request: Request, caller: Reader) -> JSONResponse:
    """Answer from memory, with sources. Without a generating model `answer` is null and `reason` says so."""
    parts: Parts = request.app.state.parts
    behind = await wait_for_position(parts, caller.tenant_id, body)
    given, recorded = await run_in_threadpool(_answer, parts, caller, body)
    retrieval = given.context.retrieval
    background = _afterwards(parts, retrieval, injected(given.context.items), cause="injected")
    content = {
        **_head(retrieval), **behind, "answer": given.text, "reason": given.reason, "recorded": recorded,
        "sources": [_item(item) for item in given.context.items if item.result], **_context(given.context),
    }  # fmt: skip
    return JSONResponse(content, background=background)


def _search_past(parts: Parts, caller: Caller, body: SearchBody, at: datetime) -> dict[str, Any]:
    kinds = tuple(body.kinds) if body.kinds else KINDS
    asked = PastQuestion(
        body.user_id, body.agent_id, body.query, at, limit=body.limit, kinds=kinds, filters=body.filters(),
        min_score=body.least(),
    )  # fmt: skip
    found = search_past(parts, caller.tenant_id, asked)
    return {
        "retrieval_id": str(found.retrieval_id),
        "degraded": list(found.degraded),
        "as_of": at.isoformat(),
        "results": [_result(result) for result in found.results],
    }


def _build(parts: Parts, tenant_id: UUID, body: ContextBody) -> Context:
    return build_context(
        parts, tenant_id, body.ask(), token_budget=body.token_budget, conversation_id=body.conversation_id
    )


def _answer(parts: Parts, caller: Caller, body: AnswerBody) -> tuple[Answer, int]:
    given = answer(
        parts,
        caller.tenant_id,
        body.ask(),
        token_budget=body.token_budget,
        conversation_id=body.conversation_id,
    )
    turns = _exchange(body, given) if body.record and body.conversation_id and "ingest" in caller.scopes else []
    if turns:
        record_turns(
            parts.database, caller.tenant_id, turns, policy=parts.policy, max_attempts=parts.max_attempts,
            hot_copies=parts.hot_copies,
        )  # fmt: skip
    return given, len(turns)


def _exchange(body: AnswerBody, given: Answer) -> list[NewTurn]:
    said: list[tuple[Role, str, str | None]] = [
        ("user", "question", body.query),
        ("assistant", "answer", given.text),
    ]
    return [_turn(body, given, role, name, text) for role, name, text in said if text]


def _turn(body: AnswerBody, given: Answer, role: Role, name: str, text: str) -> NewTurn:
    frame = given.context.retrieval.evidence.frame
    speaking = [speaker for speaker, as_role in frame.speakers if as_role == role]
    fallback = body.user_id if role == "user" else body.agent_id
    return NewTurn(
        user_id=body.user_id,
        agent_id=body.agent_id,
        conversation_id=body.conversation_id or "",
        client_turn_id=f"{given.context.retrieval.retrieval_id}-{name}",
        role=role,
        speaker=speaking[0] if len(speaking) == 1 else fallback,
        content=text,
        occurred_at=body.now or frame.now,
    )


def _afterwards(
    parts: Parts, retrieval: Retrieval, owners: Sequence[tuple[str, UUID]], *, cause: Cause
) -> BackgroundTask:
    return BackgroundTask(
        record_access, parts.database, retrieval.key.tenant_id, retrieval.key.scope_id,
        retrieval_id=retrieval.retrieval_id, cause=cause, owners=list(owners),
    )  # fmt: skip


def _head(retrieval: Retrieval) -> dict[str, Any]:
    doubt = retrieval.not_said
    return {
        "retrieval_id": str(retrieval.retrieval_id),
        "degraded": list(retrieval.degraded),
        "not_said": {"actor": doubt.actor, "doubt": doubt.doubt} if doubt else None,
    }


def _context(context: Context) -> dict[str, Any]:
    return {
        "context": context.text,
        "tokens": context.tokens,
        "items": [_item(item) for item in context.items],
        "sections": context.sections,
    }


def _item(item: ContextItem) -> dict[str, Any]:
    shown = _result(item.result) if item.result else {}
    pages = {"pages": [str(page_id) for page_id in item.page_ids]} if item.page_ids else {}
    return {**shown, **pages, "section": item.section, "ref": item.ref, "line": item.line}


def _result(result: Result) -> dict[str, Any]:
    return {
        "kind": result.kind,
        "id": str(result.owner_id),
        "score": result.score,
        "signals": result.signals,
        "features": result.features,
        "content": result.content,
        "speaker": result.speaker,
        "date": result.at.isoformat(),
        "event_date": result.event_at.isoformat() if result.event_at else None,
        "event_precision": result.event_precision,
        "conversation_id": result.conversation_id,
        "source_turns": [_source(source) for source in result.source_turns],
        "knowledge_kind": result.knowledge_kind,
        "status": result.status,
        "repeats": [str(knowledge_id) for knowledge_id in result.repeats],
    }


def _source(source: FoundTurn) -> dict[str, Any]:
    return {
        "turn_id": str(source.turn_id),
        "client_turn_id": source.client_turn_id,
        "conversation_id": source.external_id,
        "seq": source.seq,
    }
