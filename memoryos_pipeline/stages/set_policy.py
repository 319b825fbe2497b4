"""Set a policy: write the next version, and owe every scope it is in force for what follows from it."""

from uuid import UUID

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.erasure import refuse_erased
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.policies import PolicyRow, set_policy


def put_policy(
    database: Database, tenant_id: UUID, *, user_id: str | None, preset: str, policy: Policy, max_attempts: int = 5
) -> PolicyRow:
    """Put a policy in force for a user, or for the tenant when `user_id` is None; return its version.

    It acts from the next statement on. When what is remembered ends and cools is worked out anew by the work this owes.
    Raises ErasedScopeError for an erased user.
    """
    with database.transaction(tenant_id) as connection:
        if user_id is not None:
            refuse_erased(connection, tenant_id, user_id)
        row, scopes = set_policy(connection, tenant_id, user_id=user_id, preset=preset, policy=policy)
        owed = [Owed(WorkKind.FORGET, str(scope_id), scope_id) for scope_id in scopes]
        owe(connection, tenant_id, owed, max_attempts=max_attempts)
    return row
