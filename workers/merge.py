"""Queue `merge`: candidates meet what is known, one scope at a time."""

from workers.celery_app import app
from workers.envelope import WorkTask, deliver


@app.task(base=WorkTask, name="memoryos.merge")  # type: ignore[untyped-decorator]
def merge(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)
