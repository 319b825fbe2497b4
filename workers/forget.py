"""Queue `forget`: faded knowledge becomes a tombstone, and later nothing."""

from workers.celery_app import app
from workers.envelope import WorkTask, deliver


@app.task(base=WorkTask, name="memoryos.forget")  # type: ignore[untyped-decorator]
def forget(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)
