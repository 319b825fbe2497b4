"""Finding the receipts of turns that were recorded, for whoever does not know the outcome."""

from collections.abc import Sequence
from uuid import UUID

from memoryos_pipeline.domain import ids
from memoryos_pipeline.domain.turns import ConversationName, Receipt
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.turns import find_turns


def find_receipts(
    database: Database, tenant_id: UUID, name: ConversationName, client_turn_ids: Sequence[str]
) -> list[Receipt]:
    """Return the receipts that exist of the named turns of one conversation, in the order they are asked for."""
    scope = ids.scope_id(tenant_id, name.user_id, name.agent_id)
    conversation = ids.conversation_id(scope, name.conversation_id)
    asked = {ids.turn_key(str(conversation), turn): turn for turn in client_turn_ids}
    with database.transaction(tenant_id) as connection:
        found = find_turns(connection, tenant_id, list(asked))
    return [
        Receipt(
            client_turn_id=client_turn_id,
            turn_id=turn_key,
            conversation_id=name.conversation_id,
            seq=found[turn_key].seq,
            position=found[turn_key].position,
            body_sha256=found[turn_key].body_sha256,
        )
        for turn_key, client_turn_id in asked.items()
        if turn_key in found
    ]
