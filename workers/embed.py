"""Queue `embed`: turns, summaries and knowledge get vectors and postings."""

from workers.celery_app import app
from workers.envelope import WorkTask, deliver


@app.task(base=WorkTask, name="memoryos.embed")  # type: ignore[untyped-decorator]
def embed(work_ids: list[int], **_: object) -> None:
    """Do these work rows of the queue."""
    deliver(work_ids)
