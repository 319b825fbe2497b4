"""Invariants read as values: what the views of the database find, and a client's journal held against SQL."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

# These joins read a tenant whole: without fresh statistics the planner would loop over it row by row.
REST = text("select set_config('app.rest_seconds', :seconds, true), set_config('enable_nestloop', 'off', true)")
VIOLATIONS = text("""
    select invariant, subject, sentence from memoryos.violations where tenant_id = :tenant_id
     order by invariant, sentence, subject
""")
RECORDED = text("""
    select s.user_id, s.agent_id, c.external_id, t.client_turn_id, t.seq, t.body_sha256,
           encode(sha256(convert_to(concat_ws(chr(31), t.role, t.speaker, t.occurred_at, t.content), 'UTF8')), 'hex')
      from memoryos.turn t
      join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
      join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
     where t.tenant_id = :tenant_id
""")

TurnName = tuple[str, str, str, str]
"""user_id, agent_id, conversation_id and client_turn_id, as the sender names them."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant: which, of what, and a sentence with what is wrong and what repairs it."""

    invariant: str
    subject: str
    sentence: str


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One turn as its sender knows it. `seq` is None while nobody has acknowledged it (it may be there or not).

    `body_sha256` is the hash of `domain.turn_body.hash_turn`; None is not compared.
    """

    user_id: str
    agent_id: str
    conversation_id: str
    client_turn_id: str
    seq: int | None
    body_sha256: bytes | None = None

    @property
    def name(self) -> TurnName:
        """The turn's name."""
        return self.user_id, self.agent_id, self.conversation_id, self.client_turn_id


@dataclass(frozen=True, slots=True)
class JournalVerdict:
    """I1: what was acknowledged and is not there as it was acknowledged, is there twice, or was never sent."""

    lost: tuple[TurnName, ...]
    doubled: tuple[TurnName, ...]
    unexpected: tuple[TurnName, ...]


@dataclass(frozen=True, slots=True)
class _Recorded:
    seq: int
    body_sha256: bytes
    likeness: tuple[str, ...]


def find_violations(connection: Connection, tenant_id: UUID, *, at_rest: bool = False) -> list[Violation]:
    """Return every broken invariant of a tenant, I2 on; I1 needs a journal.

    `at_rest` says that the pipeline is drained: then any leased row and any row that is due counts. Otherwise work
    may wait for five minutes before it does.
    """
    connection.execute(REST, {"seconds": "0" if at_rest else ""})
    return [Violation(*row) for row in connection.execute(VIOLATIONS, {"tenant_id": tenant_id})]


def compare_journal(connection: Connection, tenant_id: UUID, journal: Collection[JournalEntry]) -> JournalVerdict:
    """Compare a sender's journal with all turns of the tenant.

    A turn whose words, speaker and moment equal those of another turn of its conversation, under a name that was
    never sent, is doubled; any other name that was never sent is unexpected.
    """
    recorded = _read_recorded(connection, tenant_id)
    sent = {entry.name for entry in journal}
    acknowledged = [entry for entry in journal if entry.seq is not None]
    strangers = sorted(set(recorded) - sent)
    likenesses = {recorded[name].likeness for name in sent if name in recorded}
    copies = tuple(name for name in strangers if recorded[name].likeness in likenesses)
    return JournalVerdict(
        lost=tuple(entry.name for entry in acknowledged if not _is_kept(entry, recorded.get(entry.name))),
        doubled=(*_acknowledged_twice(acknowledged), *copies),
        unexpected=tuple(name for name in strangers if name not in copies),
    )


def _read_recorded(connection: Connection, tenant_id: UUID) -> dict[TurnName, _Recorded]:
    rows = connection.execute(RECORDED, {"tenant_id": tenant_id})
    return {
        (user, agent, conversation, name): _Recorded(seq, bytes(sha), (user, agent, conversation, likeness))
        for user, agent, conversation, name, seq, sha, likeness in rows
    }


def _is_kept(entry: JournalEntry, recorded: _Recorded | None) -> bool:
    if recorded is None or recorded.seq != entry.seq:
        return False
    return entry.body_sha256 is None or entry.body_sha256 == recorded.body_sha256


def _acknowledged_twice(acknowledged: Iterable[JournalEntry]) -> tuple[TurnName, ...]:
    counts = Counter(name for name, _ in {(entry.name, entry.seq) for entry in acknowledged})
    return tuple(sorted(name for name, seqs in counts.items() if seqs > 1))
