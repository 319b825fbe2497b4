"""A small past in SQL: one user's memory with at least one row in every table that can hold something of a user."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import text

from memoryos_pipeline.domain import ids
from memoryos_pipeline.store.database import Database

PAST = [text(statement) for statement in Path(__file__).with_suffix(".sql").read_text().split(";\n") if statement]


@dataclass(frozen=True)
class Past:
    """The ids of what was written."""

    tenant_id: UUID
    user_id: str
    scope: UUID
    conversation: UUID
    page: UUID
    segment: UUID
    old: UUID
    new: UUID
    other: UUID

    def values(self) -> dict[str, Any]:
        """Return the parameters the statements of tests may use."""
        names = ("scope", "conversation", "page", "segment", "old", "new", "other")
        return {"tenant": self.tenant_id, "user": self.user_id, **{name: getattr(self, name) for name in names}}


def live_a_past(app: Database, tenant_id: UUID, *, user_id: str = "maya", canary: str = "canary") -> Past:
    """Write the memory of one user, whole and without any violation."""
    scope = ids.scope_id(tenant_id, user_id, "companion")
    conversation = ids.conversation_id(scope, "c1")
    minted = {name: ids.derive_id(name, scope) for name in ("segment", "old", "new", "other")}
    past = Past(tenant_id, user_id, scope, conversation, ids.page_id(conversation, 1), **minted)
    values = {
        **past.values(),
        "agent": "companion",
        "canary": canary,
        "policy": ids.mint_id(),
        "verdict": ids.mint_id(),
    }
    with app.transaction(tenant_id) as connection:
        for statement in PAST:
            connection.execute(statement, values)
    return past
