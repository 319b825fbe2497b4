"""Record access: what an answer showed, written after it was sent. A failure is logged and costs the caller nothing."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from memoryos_pipeline.store.access import insert_access_events
from memoryos_pipeline.store.database import Database

Cause = Literal["retrieved", "injected", "cited"]

log = structlog.get_logger(__name__)


def record_access(
    database: Database, tenant_id: UUID, scope_id: UUID, *, retrieval_id: UUID, cause: Cause,
    owners: Sequence[tuple[str, UUID]],
) -> None:  # fmt: skip
    """Write one access event for each (owner kind, owner id); heat is changed by whoever applies them."""
    if not owners:
        return
    try:
        with database.transaction(tenant_id) as connection:
            insert_access_events(
                connection, tenant_id, scope_id, retrieval_id=retrieval_id,
                owners=[(kind, owner_id, cause) for kind, owner_id in owners],
            )  # fmt: skip
    except SQLAlchemyError as error:
        log.warning("access_not_recorded", retrieval_id=str(retrieval_id), error=type(error).__name__)
