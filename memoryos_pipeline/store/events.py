"""The event log: audit trail, change feed and as-of index. Ids and numbers only, never content."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

INSERT = text("""
    insert into memoryos.event
        (tenant_id, kind, scope_id, conversation_id, subject_id, related_id, seq, amount, work_id)
    select :tenant_id, * from unnest(
        cast(:kinds as text[]), cast(:scopes as uuid[]), cast(:conversations as uuid[]), cast(:subjects as uuid[]),
        cast(:related as uuid[]), cast(:seqs as bigint[]), cast(:amounts as float8[]), cast(:works as bigint[]))
""")


@dataclass(frozen=True, slots=True)
class Event:
    """One past-tense fact about the pipeline, e.g. kind `page_sealed`, `knowledge_added`, `knowledge_forgotten`."""

    kind: str
    scope_id: UUID
    subject_id: UUID | None = None
    related_id: UUID | None = None
    conversation_id: UUID | None = None
    seq: int | None = None
    amount: float | None = None
    work_id: int | None = None


def record_events(connection: Connection, tenant_id: UUID, events: Sequence[Event]) -> None:
    """Write events in the transaction of what they tell about."""
    if not events:
        return
    values = {
        "tenant_id": tenant_id,
        "kinds": [event.kind for event in events],
        "scopes": [event.scope_id for event in events],
        "conversations": [event.conversation_id for event in events],
        "subjects": [event.subject_id for event in events],
        "related": [event.related_id for event in events],
        "seqs": [event.seq for event in events],
        "amounts": [event.amount for event in events],
        "works": [event.work_id for event in events],
    }
    connection.execute(INSERT, values)
