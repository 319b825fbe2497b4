"""Queue `maintenance`: conversations advance, sweeps look for what is due."""

from memoryos_pipeline.store.heartbeats import drop_silent
from memoryos_pipeline.store.sweeps import drop_old_slots, run_slot
from workers.celery_app import app
from workers.envelope import WorkTask, deliver
from workers.runtime import get_runtime


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
    """Drop old slots and the heartbeats of processes that are gone."""
    runtime = get_runtime()
    drop_old_slots(runtime.ledger_database)
    drop_silent(runtime.ledger_database)
