"""Queue `summarize`: pages get their summary, keywords, topics and place in a chain."""

from workers.celery_app import app
from workers.envelope import WorkTask, deliver


@app.task(base=WorkTask, name="memoryos.summarize")  # type: ignore[untyped-decorator]
def summarize(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)
