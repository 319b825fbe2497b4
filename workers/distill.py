"""Queue `distill`: pages yield candidates for knowledge."""

from workers.celery_app import app
from workers.envelope import WorkTask, deliver


@app.task(base=WorkTask, name="memoryos.distill")  # type: ignore[untyped-decorator]
def distill(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)
