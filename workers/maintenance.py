"""Queue `maintenance`: conversations advance, sweeps look for what is due."""

import structlog

from memoryos_pipeline.readmodels.scheduled_doctor import run_doctor
from memoryos_pipeline.store.heartbeats import drop_silent
from memoryos_pipeline.store.retention import prune
from memoryos_pipeline.store.sweeps import drop_old_slots, run_slot, take_slot
from memoryos_pipeline.store.vigilance import drop_old_tallies
from workers.celery_app import app
from workers.envelope import WorkTask, deliver
from workers.runtime import get_runtime

log = structlog.get_logger("workers.maintenance")
DAY_SECONDS = 86_400.0


@app.task(base=WorkTask, name="memoryos.maintenance")  # type: ignore[untyped-decorator]
def maintenance(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)


@app.task(base=WorkTask, name="memoryos.sweep")  # type: ignore[untyped-decorator]
def sweep(name: str, period_seconds: float, **_: object) -> None:
    """Run a sweep in its slot; a second scheduler finds the slot taken."""
    runtime = get_runtime()
    run_slot(runtime.ledger_database, name, period_seconds=period_seconds, policy=runtime.parts.policy)


@app.task(base=WorkTask, name="memoryos.tidy")  # type: ignore[untyped-decorator]
def tidy(**_: object) -> None:
    """Drop what processes leave behind, and once a day what has outlived its retention."""
    runtime = get_runtime()
    drop_old_slots(runtime.ledger_database)
    drop_silent(runtime.ledger_database)
    with runtime.ledger_database.across_tenants() as connection:
        drop_old_tallies(connection)
    if take_slot(runtime.ledger_database, "retention", period_seconds=DAY_SECONDS):
        settings = runtime.settings
        removed = prune(
            runtime.ledger_database,
            access_days=settings.access_retention_days,
            event_days=settings.event_retention_days,
        )
        log.info("pruned", counts=removed)


@app.task(base=WorkTask, name="memoryos.doctor")  # type: ignore[untyped-decorator]
def doctor(period_seconds: float, **_: object) -> None:
    """Check the invariants of every tenant, once a period however many schedulers ask, and keep the figures."""
    runtime = get_runtime()
    slot = take_slot(runtime.ledger_database, "doctor", period_seconds=period_seconds)
    if slot is not None:
        run_doctor(runtime.parts.database, runtime.ledger_database, slot=slot)
