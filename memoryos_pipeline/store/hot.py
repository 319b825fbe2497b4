"""The hot tail of one conversation as a copy of it is made and judged: what stands in Postgres, and what fits it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.store.found import FoundTurn, local_time
from memoryos_pipeline.store.search import ScopeKey

# A copy is not used for a conversation of which forgetting took a hot turn; that does not happen, and is asked anyway.
READ_STAMP = text("""
    select c.sealed_through, t.seq, t.turn_id, cast(cast(t.position as text) as bigint)
      from memoryos.conversation c
      join memoryos.turn t
        on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id and t.seq = c.next_seq - 1
     where c.tenant_id = :tenant_id and c.scope_id = :scope_id and c.conversation_id = :conversation_id
       and not exists (select from memoryos.turn_left l
                        where l.tenant_id = c.tenant_id and l.conversation_id = c.conversation_id
                          and l.seq > c.sealed_through)
""")
LOAD_TAIL = text("""
    select seq, turn_id, cast(cast(position as text) as bigint) as position, client_turn_id, role, speaker, content,
           lang, occurred_at, utc_offset_minutes, kind
      from memoryos.turn
     where tenant_id = :tenant_id and scope_id = :scope_id and conversation_id = :conversation_id
       and seq > :sealed_through and seq <= :through
     order by seq
""")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where a conversation stands: the last turn on a page, and its newest turn with the transaction that wrote it."""

    sealed_through: int
    through: int
    turn_id: UUID
    position: int

    @property
    def hot(self) -> int:
        """How many turns are hot."""
        return self.through - self.sealed_through


@dataclass(frozen=True, slots=True)
class TailTurn:
    """One turn of a tail, of whatever kind. `occurred_at` has the offset it was said in."""

    seq: int
    turn_id: UUID
    position: int
    client_turn_id: str
    role: str
    speaker: str
    content: str
    lang: str
    occurred_at: datetime
    kind: str


def read_stamp(connection: Connection, key: ScopeKey, conversation_id: UUID) -> Stamp | None:
    """Return where a conversation stands; None when there is none, or no copy of it may be used."""
    row = connection.execute(READ_STAMP, key.bind(conversation_id=conversation_id)).first()
    return Stamp(*row) if row else None


def load_tail_turns(connection: Connection, key: ScopeKey, conversation_id: UUID, stamp: Stamp) -> list[TailTurn]:
    """Return every hot turn of a conversation, oldest first."""
    values = key.bind(
        conversation_id=conversation_id, sealed_through=stamp.sealed_through, through=stamp.through
    )  # fmt: skip
    return [
        TailTurn(
            row.seq, row.turn_id, row.position, row.client_turn_id, row.role, row.speaker, row.content, row.lang,
            local_time(row.occurred_at, row.utc_offset_minutes), row.kind,
        )
        for row in connection.execute(LOAD_TAIL, values)
    ]  # fmt: skip


def fitting(copy: Sequence[TailTurn], stamp: Stamp) -> list[TailTurn] | None:
    """Return the hot turns out of a copy; None when it is not exactly what stands in Postgres.

    A copy is a run of turns without gaps. It fits when its last turn is the newest one, by number, id and transaction,
    and it reaches back to the last page.
    """
    if not copy or copy[-1].seq - copy[0].seq + 1 != len(copy) or copy[0].seq > stamp.sealed_through + 1:
        return None
    newest = copy[-1]
    if (newest.seq, newest.turn_id, newest.position) != (stamp.through, stamp.turn_id, stamp.position):
        return None
    return [turn for turn in copy if turn.seq > stamp.sealed_through]


def as_found(turns: Sequence[TailTurn], *, conversation_id: UUID, external_id: str) -> list[FoundTurn]:
    """Return the turns a context may show, newest first, as recall reads them."""
    return [
        FoundTurn(
            turn.turn_id, conversation_id, external_id, turn.seq, turn.client_turn_id, turn.role, turn.speaker,
            turn.content, turn.lang, turn.occurred_at, is_hot=True,
        )
        for turn in reversed(turns) if turn.kind == "normal"
    ]  # fmt: skip


def write_turn(turn: TailTurn) -> str:
    """Return a turn as a copy holds it: its seq, a space, JSON."""
    body = [
        str(turn.turn_id), turn.position, turn.client_turn_id, turn.role, turn.speaker, turn.content, turn.lang,
        turn.occurred_at.isoformat(), turn.kind,
    ]  # fmt: skip
    return f"{turn.seq} {json.dumps(body, ensure_ascii=False)}"


def read_turn(written: str) -> TailTurn:
    """Return what `write_turn` wrote. Raises ValueError for anything else."""
    seq, _, body = written.partition(" ")
    turn_id, position, client_turn_id, role, speaker, content, lang, at, kind = json.loads(body)
    return TailTurn(
        int(seq), UUID(turn_id), int(position), client_turn_id, role, speaker, content, lang,
        datetime.fromisoformat(at), kind,
    )  # fmt: skip
