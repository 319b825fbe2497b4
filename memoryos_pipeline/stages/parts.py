"""What a stage is given: the database, the models and the policy. Built once a process by pipeline.py."""

from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.work import Lease
from memoryos_pipeline.models.protocols import Embedder, LanguageModel
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.hot_copy import HotCopies
from memoryos_pipeline.store.policies import find_policy_of_scope


@dataclass(frozen=True)
class Parts:
    """The concrete parts of one process. A stage is `stage(parts, lease)`: load, think, save.

    `policy` is the one of scopes whose tenant and user have set none; `under_policy` gives a scope its own.
    `hot_copies` is where hot tails are copied to, if they are.
    """

    database: Database
    embedder: Embedder
    language_model: LanguageModel
    policy: Policy = DEFAULT
    max_attempts: int = 5
    hot_copies: HotCopies | None = None

    def under_policy(self, connection: Connection, tenant_id: UUID, scope_id: UUID) -> "Parts":
        """Return these parts with the policy that is in force for a scope, read in this transaction."""
        found = find_policy_of_scope(connection, tenant_id, scope_id)
        return self if found is None else replace(self, policy=found.policy)

    def of_lease(self, lease: Lease) -> "Parts":
        """Return the same, read in a transaction of its own: for a stage that loads many times."""
        with self.database.transaction(lease.tenant_id) as connection:
            return self.under_policy(connection, lease.tenant_id, lease.scope_id)
