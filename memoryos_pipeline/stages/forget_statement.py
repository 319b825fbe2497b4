"""Forget one statement by decision: out of every search at once, and restorable like everything that is forgotten."""

from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.errors import NotFoundError
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import try_again
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.forgetting import archive_sources, entomb, find_standing, release_turns
from memoryos_pipeline.store.knowledge import find_scope, move_scope
from memoryos_pipeline.store.rollups import drop_left


def forget_statement(parts: Parts, tenant_id: UUID, knowledge_id: UUID) -> bool:
    """Forget a live statement, pinned or not, with what it replaced; False when it is forgotten already.

    The pages it was learnt from leave ranking, and turns that nothing else is known from leave recall. It can be
    restored until its grace is over, then it is deleted. Raises NotFoundError when it is unknown or only history.
    """
    return try_again(partial(_forget_once, parts, tenant_id, knowledge_id))


def _forget_once(parts: Parts, tenant_id: UUID, knowledge_id: UUID) -> bool:
    with parts.database.transaction(tenant_id) as connection:
        found = find_standing(connection, tenant_id, knowledge_id)
        if found is None or find_scope(connection, tenant_id, found.scope_id, lock=True) is None:
            raise NotFoundError
        now = find_standing(connection, tenant_id, knowledge_id)
        if now is not None and now.status == "forgotten":
            return False
        if now is None or now.status != "active":
            raise NotFoundError("this statement is history; forget the one that holds now, and it goes with it")
        _forget(parts, connection, tenant_id, now.scope_id, knowledge_id)
        return True


def _forget(parts: Parts, connection: Connection, tenant_id: UUID, scope_id: UUID, knowledge_id: UUID) -> None:
    policy = parts.under_policy(connection, tenant_id, scope_id).policy
    forgotten = entomb(connection, tenant_id, scope_id, [knowledge_id], grace_days=policy.forget_grace_days)
    # A summary repeats what its turns say, so the page goes with the statement.
    pages = archive_sources(connection, tenant_id, forgotten)
    release_turns(connection, tenant_id, scope_id)
    if policy.rollups == "daily":
        drop_left(connection, tenant_id, scope_id)
    move_scope(connection, tenant_id, scope_id)
    told = [Event("knowledge_forgotten", scope_id, subject_id=each) for each in forgotten]
    told += [Event("page_archived", scope_id, subject_id=page, conversation_id=talk) for page, talk in pages]
    record_events(connection, tenant_id, told)
