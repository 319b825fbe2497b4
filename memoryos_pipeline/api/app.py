"""The FastAPI application: thin. Validate, call a stage or recall, answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI

from memoryos_pipeline import __version__
from memoryos_pipeline.api.auth import Authenticator
from memoryos_pipeline.api.errors import install_error_handlers
from memoryos_pipeline.api.limits import BodyLimits
from memoryos_pipeline.api.request_log import RequestLog
from memoryos_pipeline.api.routes import (
    forgetting,
    health,
    hot,
    knowledge,
    metrics,
    pipeline,
    policies,
    reads,
    recall,
    relations,
    turns,
    users,
    verdicts,
    watermarks,
)
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database

ROUTERS = (
    health.router, metrics.router, turns.router, reads.router, hot.router, watermarks.router, knowledge.router,
    pipeline.router, users.router, recall.router, policies.router, forgetting.router,
    verdicts.router, relations.router,
)  # fmt: skip
"""Every router of the API, in the order of its documentation."""
REQUEST_THREADS = 16
"""Blocking work at most at a time; more requests wait on the event loop, where waiting is cheap."""


def create_app(parts: Parts, *, ledger: Database | None = None) -> FastAPI:
    """Build the application over the parts of this process; `ledger` is the role that sees figures, and no text."""
    app = FastAPI(title="memoryos-pipeline", version=__version__, lifespan=_bounded_threads)
    app.state.parts = parts
    app.state.ledger = ledger
    app.state.authenticator = Authenticator(parts.database)
    app.state.readiness = health.Readiness(parts.database)
    for router in ROUTERS:
        app.include_router(router)
    install_error_handlers(app)
    app.add_middleware(BodyLimits)
    app.add_middleware(RequestLog)
    return app


@asynccontextmanager
async def _bounded_threads(_: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = REQUEST_THREADS
    yield
