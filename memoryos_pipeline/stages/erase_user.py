"""Erasing a user on their request: at once, whole, and with a receipt."""

from uuid import UUID

from memoryos_pipeline.domain.text_gate import gate_id
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.erasure import ErasureReceipt
from memoryos_pipeline.store.erasure import erase_user as erase_rows
from memoryos_pipeline.store.hot_copy import HotCopies


def erase_user(
    database: Database, tenant_id: UUID, user_id: str, *, hot_copies: HotCopies | None = None
) -> ErasureReceipt:
    """Erase a user, and then what was copied of their hot tails.

    Raises InvalidTurnError for a name nobody can have, NotFoundError for an unknown user.
    """
    receipt = erase_rows(database, tenant_id, gate_id(user_id, "user_id"))
    if hot_copies is not None:
        hot_copies.erase(tenant_id, receipt.conversation_ids)
    return receipt
