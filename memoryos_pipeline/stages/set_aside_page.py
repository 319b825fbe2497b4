"""Set a page aside that merging fails on, so that its memory goes on; and put it back in line when it is replayed."""

from functools import partial
from uuid import UUID

from memoryos_pipeline.domain.work import ErrorClass, Lease, Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.candidates import find_extraction
from memoryos_pipeline.store.database import try_again
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.knowledge import find_page_in_line, find_scope, move_scope, next_extract_ordinal
from memoryos_pipeline.store.ledger import complete, owe, renew
from memoryos_pipeline.store.set_aside import bury_page, put_page_back


def set_aside_page(parts: Parts, lease: Lease, *, error_class: str, reason: str) -> bool:
    """Pass over the page that merging stands at: its dead row says why, and the merge begins anew behind it.

    False when it is not the page that is wrong: nothing is in line, or a provider has been away for too long. Raises
    FencedError when the lease was lost.
    """
    if error_class == ErrorClass.DEFERRED:
        return False
    # To give up on this is to give up the whole line, so a deadlock may not decide it.
    return try_again(partial(_set_aside, parts, lease, error_class=error_class, reason=reason))


def _set_aside(parts: Parts, lease: Lease, *, error_class: str, reason: str) -> bool:
    with parts.database.transaction(lease.tenant_id) as connection:
        scope = find_scope(connection, lease.tenant_id, lease.scope_id, lock=True)
        page = find_page_in_line(connection, lease.tenant_id, lease.scope_id, scope) if scope else None
        if page is None or page.page_id is None or page.state != "distilled":
            return False
        renew(connection, lease)
        bury_page(connection, lease, page.page_id, error_class=error_class, error=reason)
        move_scope(connection, lease.tenant_id, lease.scope_id, merged_ordinal=page.ordinal)
        told = Event(
            "page_set_aside", lease.scope_id, subject_id=page.page_id,
            conversation_id=page.conversation_id, work_id=lease.work_id,
        )  # fmt: skip
        record_events(connection, lease.tenant_id, [told])
    return True


def put_back_page(parts: Parts, lease: Lease) -> None:
    """Put a page that was set aside at the end of the line; what it says keeps the time it was said at.

    Raises FencedError when the lease was lost.
    """
    page_id = UUID(lease.subject_key)
    with parts.database.transaction(lease.tenant_id) as connection:
        scope = find_scope(connection, lease.tenant_id, lease.scope_id, lock=True)
        state = find_extraction(connection, lease.tenant_id, page_id, lock=True)
        if scope is not None and state is not None and (state.extract_ordinal or 0) <= scope.merged_ordinal:
            ordinal = next_extract_ordinal(connection, lease.tenant_id, lease.scope_id)
            put_page_back(connection, lease.tenant_id, page_id, ordinal=ordinal)
            merge = Owed(WorkKind.MERGE, str(lease.scope_id), lease.scope_id)
            owe(connection, lease.tenant_id, [merge], max_attempts=parts.max_attempts)
        complete(connection, lease)
