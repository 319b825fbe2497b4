"""Queue `heat`: pages join segments, accesses warm them, time cools them."""

from workers.celery_app import app
from workers.envelope import WorkTask, deliver


@app.task(base=WorkTask, name="memoryos.heat")  # type: ignore[untyped-decorator]
def heat(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)
