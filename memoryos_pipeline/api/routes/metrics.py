"""GET /metrics: the figures of the whole system, for a key with the scope `metrics` or from this very machine."""

import ipaddress
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from memoryos_pipeline.api.auth import require
from memoryos_pipeline.api.errors import ForbiddenError
from memoryos_pipeline.readmodels.figures import Figure, read_figures, render_prometheus
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.hot_copy import HotCopies

router = APIRouter(tags=["health"])
FORMAT = "text/plain; version=0.0.4; charset=utf-8"
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
SCOPE = "metrics"
HOT_COPY = "How often this process used a copy of a hot tail, found it stale or missing, or the broker away."


async def _may_watch(request: Request) -> None:
    """Let a key with the scope through, and whoever asks from this machine without a proxy between."""
    if "authorization" in request.headers or "x-api-key" in request.headers:
        await require(SCOPE)(request)  # type: ignore[misc]
    elif not _is_local(request):
        raise ForbiddenError(SCOPE)


def _is_local(request: Request) -> bool:
    host = request.client.host if request.client else ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
    return is_loopback and not any(name in request.headers for name in FORWARDED)


@router.get("/metrics", response_class=PlainTextResponse, responses={503: {"description": "There is no ledger role."}})
async def metrics(request: Request, _: Annotated[None, Depends(_may_watch)]) -> PlainTextResponse:
    """Return oldest ages, leases, dead work, counters and violations in the text format of Prometheus."""
    ledger: Database | None = request.app.state.ledger
    if ledger is None:
        return PlainTextResponse("this process has no ledger role\n", status_code=503)
    parts: Parts = request.app.state.parts
    return PlainTextResponse(await run_in_threadpool(_render, ledger, parts.hot_copies), media_type=FORMAT)


def _render(ledger: Database, copies: HotCopies | None) -> str:
    with ledger.across_tenants() as connection:
        figures = read_figures(connection)
    if copies is not None:
        samples = tuple(([("outcome", name)], float(n)) for name, n in sorted(copies.counts.items()))
        figures.append(Figure("memoryos_hot_copy_total", HOT_COPY, "counter", samples))
    return render_prometheus(figures)
