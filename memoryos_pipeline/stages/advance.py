"""Advance a conversation: seal the pages that leave its hot buffer, and owe what each of them needs."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.paging import PageSpan, is_idle, plan_pages
from memoryos_pipeline.domain.work import Lease, Owed, WorkKind
from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.clock import read_now
from memoryos_pipeline.store.events import Event, record_events
from memoryos_pipeline.store.ledger import complete, owe, owe_once
from memoryos_pipeline.store.pages import ConversationRow, load_unsealed, lock_conversation, seal_pages

TURNS_PER_RUN = 5_000
"""A longer backlog is sealed in several runs, so that no run keeps the conversation locked for long."""


def advance(parts: Parts, lease: Lease) -> None:
    """Seal what is due in one conversation. Nothing is waited for, so it is all one transaction.

    Raises FencedError when the lease was lost; nothing is written then.
    """
    with parts.database.transaction(lease.tenant_id) as connection:
        conversation = lock_conversation(connection, lease.tenant_id, UUID(lease.subject_key))
        if conversation is not None:
            governed = parts.under_policy(connection, lease.tenant_id, lease.scope_id)
            _seal(governed, lease, connection, conversation)
        complete(connection, lease)


def _seal(parts: Parts, lease: Lease, connection: Connection, conversation: ConversationRow) -> None:
    counts_tokens = parts.policy.hot == "token_budget" or parts.policy.page_unit == "tokens"
    turns = load_unsealed(
        connection, lease.tenant_id, conversation=conversation, limit=TURNS_PER_RUN, counts_tokens=counts_tokens
    )
    is_all = len(turns) < TURNS_PER_RUN
    flush = is_all and is_idle(
        read_now(connection),
        last_activity_at=conversation.last_activity_at,
        closed_at=conversation.closed_at,
        policy=parts.policy,
    )
    spans = plan_pages(turns, parts.policy, flush=flush)
    through = conversation.next_seq - 1 if flush else spans[-1].last_seq if spans else conversation.sealed_through
    if through > conversation.sealed_through:
        page_ids = seal_pages(
            connection, lease.tenant_id, conversation=conversation, spans=spans, sealed_through=through
        )
        _owe_pages(parts, lease, connection, page_ids)
        record_events(connection, lease.tenant_id, _events(lease, conversation, spans, page_ids))
    if not is_all:
        again = Owed(WorkKind.ADVANCE, lease.subject_key, lease.scope_id)
        owe(connection, lease.tenant_id, [again], max_attempts=parts.max_attempts)


def _owe_pages(parts: Parts, lease: Lease, connection: Connection, page_ids: Sequence[UUID]) -> None:
    summaries = [Owed(WorkKind.SUMMARIZE, str(page_id), lease.scope_id) for page_id in page_ids]
    vectors = [Owed(WorkKind.EMBED, f"turns:{page_id}", lease.scope_id) for page_id in page_ids]
    owe_once(connection, lease.tenant_id, [*summaries, *vectors], max_attempts=parts.max_attempts)


def _events(
    lease: Lease, conversation: ConversationRow, spans: Sequence[PageSpan], page_ids: Sequence[UUID]
) -> list[Event]:
    return [
        Event(
            "page_sealed",
            conversation.scope_id,
            subject_id=page_id,
            conversation_id=conversation.conversation_id,
            seq=span.last_seq,
            amount=span.turn_count,
            work_id=lease.work_id,
        )
        for span, page_id in zip(spans, page_ids, strict=True)
    ]
