"""After a change of the embedder: owe a vector of the new one to everything that may be recalled."""

from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.repair import READ_WHOLE, UNINDEXED
from memoryos_pipeline.store.vectors import FIND_SPACE, SpaceOwner, space_values

BATCH = 5_000
_ANY_SPACE = "(select space_id from memoryos.vector_space)"
NOT_IN_SPACE = text(UNINDEXED.text.replace(_ANY_SPACE, f"({FIND_SPACE.text})") + " limit :limit")


def owe_reembedding(owner: Database, tenant_id: UUID, embedder: SpaceOwner, *, max_attempts: int = 5) -> int:
    """Owe the work of whatever a tenant can recall without a vector of this embedder; return how many rows that are.

    What is owed already is left alone, so it may be asked for as often as one likes. Search goes on meanwhile.
    """
    total = 0
    while owed := _owe_some(owner, tenant_id, embedder, max_attempts):
        total += owed
    return total


def lacks_vectors(owner: Database, tenant_id: UUID, embedder: SpaceOwner) -> bool:
    """Tell whether something was indexed, but by another embedder only."""
    values = {"tenant_id": tenant_id, "limit": 1, **space_values(embedder)}
    with owner.transaction(tenant_id) as connection:
        connection.execute(READ_WHOLE)
        return connection.execute(NOT_IN_SPACE, values).first() is not None


def _owe_some(owner: Database, tenant_id: UUID, embedder: SpaceOwner, max_attempts: int) -> int:
    values = {"tenant_id": tenant_id, "limit": BATCH, **space_values(embedder)}
    with owner.transaction(tenant_id) as connection:
        connection.execute(READ_WHOLE)
        found = connection.execute(NOT_IN_SPACE, values).all()
        owed = [Owed(WorkKind(kind), subject_key, scope_id) for kind, subject_key, scope_id in found]
        owe(connection, tenant_id, owed, max_attempts=max_attempts)
    return len(owed)
