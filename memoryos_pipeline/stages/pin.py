"""Pin a statement, so that nothing but a person takes it; unpin it, and it fades from that moment on."""

from uuid import UUID

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.domain.forgetting import Hold, ends_at
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.forgetting import Pinning, find_pinning, save_pinning


def pin_knowledge(parts: Parts, tenant_id: UUID, knowledge_id: UUID, *, pinned: bool) -> bool:
    """Pin or unpin a live statement; False when it was so already. Raises NotFoundError when it is not live."""
    with parts.database.transaction(tenant_id) as connection:
        found = find_pinning(connection, tenant_id, knowledge_id)
        if found is None:
            raise NotFoundError
        if found.pinned == pinned:
            return False
        policy = parts.under_policy(connection, tenant_id, found.scope_id).policy
        now = read_now(connection)
        hold = Hold(str(knowledge_id), found.strength_days, now, found.importance, pinned, found.w0)
        after = Pinning(found.scope_id, found.strength_days, found.importance, found.w0, pinned)
        save_pinning(connection, tenant_id, knowledge_id, after, forget_at=ends_at(hold, policy))
        kind = "knowledge_pinned" if pinned else "knowledge_unpinned"
        record_events(connection, tenant_id, [Event(kind, found.scope_id, subject_id=knowledge_id)])
        return True
