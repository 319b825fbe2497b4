"""Turns and the counters of their conversations: recording, and finding what was recorded."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.errors import ErasedScopeError
from memoryos_pipeline.store.erasure import subject_hash, subject_lock_key

# The shared lock makes an erasure wait for us, and us for it; the ledger is read again by INSERT_TURNS, whose
# snapshot is younger than the lock. Conversations are locked in the order of their ids by everybody.
OPEN_CONVERSATIONS = text("""
    with asked as materialized (
        select a.*, pg_advisory_xact_lock_shared(a.lock_key)
          from json_to_recordset(cast(:shares as json))
               as a(conversation_id uuid, scope_id uuid, external_id text, user_id text, agent_id text, subject bytea,
                    lock_key bigint, turns bigint, user_turns bigint, last_turn_at timestamptz,
                    tail_turn_at timestamptz)
         where not exists (select from memoryos.deletion_ledger d
                            where d.tenant_id = :tenant_id and d.subject_hash = a.subject)
         order by a.conversation_id
    ), governed as materialized (
        select u.user_id, p.* from (select distinct a.user_id from asked a) u cross join lateral (
               select o.policy_id, o.preset, o.version,
                      cast(o.settings ->> 'idle_flush_minutes' as double precision) as idle_flush_minutes
                 from memoryos.policy o
                where o.tenant_id = :tenant_id and (o.user_id = u.user_id or o.user_id is null)
                order by o.user_id nulls last, o.version desc limit 1) p
    ), scopes as (
        insert into memoryos.scope
               (tenant_id, scope_id, user_id, agent_id, preset, preset_version, idle_flush_minutes)
        select distinct cast(:tenant_id as uuid), a.scope_id, a.user_id, a.agent_id, coalesce(g.preset, 'default'),
               coalesce(g.version, 1), g.idle_flush_minutes
          from asked a left join governed g using (user_id)
         where not exists (select from memoryos.scope s where s.tenant_id = :tenant_id and s.scope_id = a.scope_id)
         order by a.scope_id
        on conflict do nothing
    )
    insert into memoryos.conversation as c
           (tenant_id, conversation_id, scope_id, external_id, next_seq, user_turns, last_turn_at, tail_turn_at,
            last_activity_at)
    select :tenant_id, a.conversation_id, a.scope_id, a.external_id, 1 + a.turns, a.user_turns, a.last_turn_at,
           a.tail_turn_at, (select memoryos.now())
      from asked a order by a.conversation_id
    on conflict (tenant_id, conversation_id) do update
       set next_seq = c.next_seq + excluded.next_seq - 1,
           user_turns = c.user_turns + excluded.user_turns,
           last_turn_at = greatest(c.last_turn_at, excluded.last_turn_at),
           before_turn_at = c.tail_turn_at,
           tail_turn_at = excluded.tail_turn_at,
           last_activity_at = excluded.last_activity_at,
           closed_at = null
    returning conversation_id, next_seq, sealed_through, before_turn_at,
              (select json_object_agg(g.user_id, g.policy_id) from governed g) as policies
""")

# Rows travel as one JSON text: measured against an array a column, it halves what the driver does per turn.
INSERT_TURNS = text("""
    with moment as materialized (
        select memoryos.now() as at
    ), inserted as (
        insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id, body_sha256,
                                   role, speaker, content, parts, metadata, kind, lang, occurred_at,
                                   utc_offset_minutes, recorded_at)
        select :tenant_id, t.*, m.at
          from moment m, json_to_recordset(cast(:rows as json))
               as t(conversation uuid, seq bigint, turn_id uuid, scope uuid, client_turn_id text, sha256 bytea,
                    role text, speaker text, content text, parts jsonb, metadata jsonb, kind text, lang text,
                    occurred_at timestamptz, utc_offset_minutes smallint)
         where not exists (select from memoryos.deletion_ledger d
                            where d.tenant_id = :tenant_id and d.subject_hash = any(cast(:subjects as bytea[])))
        on conflict do nothing
        returning conversation_id, scope_id, seq
    ), noted as (
        insert into memoryos.event (tenant_id, kind, scope_id, conversation_id, subject_id, seq, amount, at)
        select :tenant_id, 'turns_recorded', i.scope_id, i.conversation_id, i.conversation_id, max(i.seq), count(*),
               m.at
          from inserted i, moment m group by i.scope_id, i.conversation_id, m.at
    )
    select count(*), cast(cast(pg_current_xact_id() as text) as bigint) from inserted
""")

LOCK_CONVERSATIONS = text("""
    select from memoryos.conversation
     where tenant_id = :tenant_id and conversation_id = any(cast(:conversations as uuid[]))
     order by conversation_id for update
""")

FIND_TURNS = text("""
    select cast(turn_id as text), seq, cast(cast(position as text) as bigint), body_sha256
      from memoryos.turn where tenant_id = :tenant_id and turn_id = any(cast(:turn_ids as uuid[]))
""")

CLOSE_CONVERSATION = text("""
    update memoryos.conversation set closed_at = coalesce(closed_at, memoryos.now())
     where tenant_id = :tenant_id and conversation_id = :conversation_id
    returning conversation_id
""")


@dataclass(frozen=True, slots=True)
class ConversationShare:
    """What one request adds to one conversation: how many turns, how many of them are the user's, and when they were.

    `last_turn_at` is the latest turn time, `tail_turn_at` that of the last turn.
    """

    conversation_id: UUID
    scope_id: UUID
    external_id: str
    user_id: str
    agent_id: str
    turns: int
    last_turn_at: datetime
    tail_turn_at: datetime
    user_turns: int = 0


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    """A conversation after its counter was raised, its row locked until the commit.

    `before_turn_at` is the turn time of the turn ahead of the request's first, None when there is none. `policy_id` is
    the policy in force for its user, None when nobody has set one.
    """

    next_seq: int
    sealed_through: int
    before_turn_at: datetime | None
    policy_id: str | None = None


class TurnRow(NamedTuple):
    """One turn as inserted: ids as text, and the rest as the JSON object `canonical` of domain.turn_body."""

    conversation: str
    seq: int
    turn_id: str
    scope: str
    sha256: bytes
    lang: str
    utc_offset_minutes: int
    canonical: str


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """What a receipt needs of a turn."""

    seq: int
    position: int
    body_sha256: bytes


def open_conversations(
    connection: Connection, tenant_id: UUID, shares: Sequence[ConversationShare]
) -> dict[UUID, OpenedConversation]:
    """Create what is missing of scopes and conversations and raise the counters. Raises ErasedScopeError."""
    rows = connection.execute(OPEN_CONVERSATIONS, share_values(tenant_id, shares)).all()
    if len(rows) < len(shares):
        raise ErasedScopeError
    policies: dict[str, str] = rows[0].policies or {}
    users = {share.conversation_id: share.user_id for share in shares}
    return {
        row.conversation_id: OpenedConversation(
            row.next_seq, row.sealed_through, row.before_turn_at, policies.get(users[row.conversation_id])
        )
        for row in rows
    }


def share_values(tenant_id: UUID, shares: Sequence[ConversationShare]) -> dict[str, Any]:
    """Return the parameters of OPEN_CONVERSATIONS."""
    rows = [
        {
            "conversation_id": str(share.conversation_id),
            "scope_id": str(share.scope_id),
            "external_id": share.external_id,
            "user_id": share.user_id,
            "agent_id": share.agent_id,
            "subject": rf"\x{subject_hash(tenant_id, share.user_id).hex()}",
            "lock_key": subject_lock_key(tenant_id, share.user_id),
            "turns": share.turns,
            "user_turns": share.user_turns,
            "last_turn_at": share.last_turn_at.isoformat(),
            "tail_turn_at": share.tail_turn_at.isoformat(),
        }
        for share in shares
    ]
    return {"tenant_id": tenant_id, "shares": json.dumps(rows)}


def insert_turns(
    connection: Connection, tenant_id: UUID, rows: Sequence[TurnRow], *, users: Iterable[str]
) -> tuple[int, int]:
    """Insert turns and their events. Return how many were new, and the position of this transaction."""
    inserted, position = connection.execute(INSERT_TURNS, turn_values(tenant_id, rows, users=users)).one()
    return inserted, position


def turn_values(tenant_id: UUID, rows: Sequence[TurnRow], *, users: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of INSERT_TURNS."""
    return {
        "tenant_id": tenant_id,
        "subjects": [subject_hash(tenant_id, user) for user in users],
        "rows": f"[{','.join(map(_row_json, rows))}]",
    }


def _row_json(row: TurnRow) -> str:
    # The canonical form is JSON already and goes in as it is; what stands before it are ids, digits and names of ours.
    return (
        f'{{"conversation":"{row.conversation}","seq":{row.seq},"turn_id":"{row.turn_id}","scope":"{row.scope}",'
        f'"sha256":"\\\\x{row.sha256.hex()}","lang":"{row.lang}","utc_offset_minutes":{row.utc_offset_minutes},'
        f"{row.canonical[1:]}"
    )


def lock_conversations(connection: Connection, tenant_id: UUID, conversation_ids: Sequence[UUID]) -> None:
    """Lock those conversations that exist, in the one order everybody uses, until the commit."""
    connection.execute(LOCK_CONVERSATIONS, {"tenant_id": tenant_id, "conversations": list(conversation_ids)})


def find_turns(connection: Connection, tenant_id: UUID, turn_ids: Sequence[str]) -> dict[str, RecordedTurn]:
    """Return those of the turns that are recorded, by id as text."""
    rows = connection.execute(FIND_TURNS, {"tenant_id": tenant_id, "turn_ids": list(turn_ids)}).all()
    return {turn_id: RecordedTurn(*row) for turn_id, *row in rows}


def mark_closed(connection: Connection, tenant_id: UUID, conversation_id: UUID) -> bool:
    """Mark a conversation closed, once; False when there is no such conversation."""
    values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
    return connection.execute(CLOSE_CONVERSATION, values).first() is not None
