"""Small builders of rows, for tests that need a past."""

from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain.ids import scope_id
from tests.conftest import Stack

SCOPE = text("""
    insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id)
    values (:tenant_id, :scope_id, :user_id, :agent_id) on conflict do nothing
""")


def create_scope(stack: Stack, user_id: str = "maya", agent_id: str = "companion") -> UUID:
    """Create (once) and return the scope of a user and an agent."""
    scope = scope_id(stack.tenant_id, user_id, agent_id)
    values = {"tenant_id": stack.tenant_id, "scope_id": scope, "user_id": user_id, "agent_id": agent_id}
    with stack.app.transaction(stack.tenant_id) as connection:
        connection.execute(SCOPE, values)
    return scope
