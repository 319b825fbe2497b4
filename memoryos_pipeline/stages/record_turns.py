"""Recording turns: one transaction for the counters, the turns, the event and the work that is owed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.domain import ids
from memoryos_pipeline.domain.errors import ContendedError, NotFoundError, TurnConflictError
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.turn_body import MAX_TURNS, hash_turn
from memoryos_pipeline.domain.turns import NewTurn, Receipt
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.turns import (
    ConversationShare,
    OpenedConversation,
    RecordedTurn,
    TurnKey,
    TurnRow,
    find_turns,
    hex_bytes,
    insert_turns,
    lock_conversations,
    mark_closed,
    open_conversations,
)

MAX_TRIES = 5
ZERO, MINUTE = timedelta(), timedelta(minutes=1)
RETRYABLE = frozenset({"40001", "40P01", "23503"})
"""Serialization failure, deadlock, and a scope that was erased between two of our statements."""


@dataclass(frozen=True, slots=True)
class _Draft:
    turn: NewTurn
    scope_id: UUID
    key: TurnKey
    turn_id: UUID
    body_sha256: bytes
    lang: str


class _SomePresentError(Exception):
    """A turn of the request was recorded before; the transaction is rolled back and looks first."""


def record_turns(
    database: Database, tenant_id: UUID, turns: Sequence[NewTurn], *, policy: Policy, max_attempts: int
) -> list[Receipt]:
    """Record up to 1,000 turns, all or none, and return their receipts in order.

    A turn that was recorded before gets its first receipt again with `duplicate` set.
    Raises TurnConflictError, ErasedScopeError, ContendedError.
    """
    if not 1 <= len(turns) <= MAX_TURNS:
        message = f"record 1 to {MAX_TURNS} turns at a time"
        raise ValueError(message)
    recorder = _Recorder(database, tenant_id, turns, policy=policy, max_attempts=max_attempts)
    return recorder.record()


def find_receipts(database: Database, tenant_id: UUID, turns: Sequence[tuple[str, str, str, str]]) -> list[Receipt]:
    """Return the receipts that exist; each turn is (user_id, agent_id, conversation_id, client_turn_id)."""
    named = {}
    for user_id, agent_id, external_id, client_turn_id in turns:
        scope = ids.scope_id(tenant_id, user_id, agent_id)
        named[TurnKey(ids.conversation_id(scope, external_id), client_turn_id)] = external_id
    with database.transaction(tenant_id) as connection:
        found = find_turns(connection, tenant_id, list(named))
    return [_receipt(key, named[key], found[key], duplicate=False) for key in named if key in found]


def close_conversation(
    database: Database, tenant_id: UUID, *, scope_id: UUID, conversation_id: str, max_attempts: int
) -> None:
    """Close a conversation, so that all its turns are sealed. A new turn opens it again. Raises NotFoundError."""
    conversation = ids.conversation_id(scope_id, conversation_id)
    with database.transaction(tenant_id) as connection:
        if mark_closed(connection, tenant_id, conversation) is None:
            raise NotFoundError
        owed = [Owed(WorkKind.ADVANCE, str(conversation), scope_id)]
        owe(connection, tenant_id, owed, max_attempts=max_attempts)


class _Recorder:
    """One request on its way in."""

    def __init__(
        self, database: Database, tenant_id: UUID, turns: Sequence[NewTurn], *, policy: Policy, max_attempts: int
    ) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._policy = policy
        self._max_attempts = max_attempts
        self._drafts = _drafts(tenant_id, turns)
        self._fresh = _without_repeats(self._drafts)

    def record(self) -> list[Receipt]:
        """Try the fast path; when a turn is there already, look first. Deadlocks are tried again."""
        look_first = False
        for _ in range(MAX_TRIES):
            try:
                return self._record_once(look_first=look_first)
            except _SomePresentError:
                look_first = True
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in RETRYABLE:
                    raise
        raise ContendedError

    def _record_once(self, *, look_first: bool) -> list[Receipt]:
        with self._database.transaction(self._tenant_id) as connection:
            known = self._look(connection) if look_first else {}
            fresh = [draft for draft in self._fresh if draft.key not in known]
            return self._receipts(known, self._insert(connection, fresh) if fresh else {})

    def _look(self, connection: Connection) -> dict[TurnKey, RecordedTurn]:
        conversations = sorted({draft.key.conversation_id for draft in self._fresh})
        lock_conversations(connection, self._tenant_id, conversations)
        known = find_turns(connection, self._tenant_id, [draft.key for draft in self._fresh])
        for draft in self._fresh:
            recorded = known.get(draft.key)
            if recorded and recorded.body_sha256 != draft.body_sha256:
                raise TurnConflictError(draft.turn.client_turn_id)
        return known

    def _insert(self, connection: Connection, fresh: Sequence[_Draft]) -> dict[TurnKey, RecordedTurn]:
        shares = _shares(fresh)
        opened = open_conversations(connection, self._tenant_id, shares)
        rows = _rows(fresh, shares, opened)
        users = {share.user_id for share in shares}
        inserted, position = insert_turns(connection, self._tenant_id, rows, users=users)
        if inserted < len(rows):
            raise _SomePresentError
        self._owe_advance(connection, shares, opened)
        return {
            draft.key: RecordedTurn(draft.turn_id, row["seq"], position, draft.body_sha256)
            for draft, row in zip(fresh, rows, strict=True)
        }

    def _owe_advance(
        self, connection: Connection, shares: Sequence[ConversationShare], opened: dict[UUID, OpenedConversation]
    ) -> None:
        owed = []
        for share in shares:
            conversation = opened[share.conversation_id]
            if conversation.next_seq - 1 - conversation.sealed_through > self._policy.hot_capacity_turns:
                owed.append(Owed(WorkKind.ADVANCE, str(share.conversation_id), share.scope_id))
        owe(connection, self._tenant_id, owed, max_attempts=self._max_attempts)

    def _receipts(self, known: dict[TurnKey, RecordedTurn], recorded: dict[TurnKey, RecordedTurn]) -> list[Receipt]:
        receipts, answered = [], set(known)
        for draft in self._drafts:
            turn = known.get(draft.key) or recorded[draft.key]
            receipts.append(_receipt(draft.key, draft.turn.conversation_id, turn, duplicate=draft.key in answered))
            answered.add(draft.key)
        return receipts


def _drafts(tenant_id: UUID, turns: Sequence[NewTurn]) -> list[_Draft]:
    # Deriving an id costs as much as checking a turn, and most turns of a request share their conversation.
    named: dict[tuple[str, str, str], tuple[UUID, UUID]] = {}
    drafts = []
    for turn in turns:
        name = (turn.user_id, turn.agent_id, turn.conversation_id)
        if name not in named:
            scope = ids.scope_id(tenant_id, turn.user_id, turn.agent_id)
            named[name] = scope, ids.conversation_id(scope, turn.conversation_id)
        drafts.append(_draft(turn, *named[name]))
    return drafts


def _draft(turn: NewTurn, scope_id: UUID, conversation_id: UUID) -> _Draft:
    return _Draft(
        turn=turn,
        scope_id=scope_id,
        key=TurnKey(conversation_id, turn.client_turn_id),
        turn_id=ids.turn_id(conversation_id, turn.client_turn_id),
        body_sha256=hash_turn(turn),
        lang=detect_language(turn.content),
    )


def _without_repeats(drafts: Sequence[_Draft]) -> list[_Draft]:
    first: dict[TurnKey, _Draft] = {}
    for draft in drafts:
        if first.setdefault(draft.key, draft).body_sha256 != draft.body_sha256:
            raise TurnConflictError(draft.turn.client_turn_id)
    return list(first.values())


def _shares(drafts: Sequence[_Draft]) -> list[ConversationShare]:
    together: dict[UUID, list[_Draft]] = {}
    for draft in drafts:
        together.setdefault(draft.key.conversation_id, []).append(draft)
    return [_share(conversation, together[conversation]) for conversation in sorted(together)]


def _share(conversation: UUID, drafts: Sequence[_Draft]) -> ConversationShare:
    first = drafts[0]
    return ConversationShare(
        conversation_id=conversation,
        scope_id=first.scope_id,
        external_id=first.turn.conversation_id,
        user_id=first.turn.user_id,
        agent_id=first.turn.agent_id,
        turns=len(drafts),
        last_turn_at=max(draft.turn.occurred_at for draft in drafts),
    )


def _rows(
    drafts: Sequence[_Draft], shares: Sequence[ConversationShare], opened: dict[UUID, OpenedConversation]
) -> list[TurnRow]:
    next_seq = {share.conversation_id: opened[share.conversation_id].next_seq - share.turns for share in shares}
    texts = {share.conversation_id: (str(share.conversation_id), str(share.scope_id)) for share in shares}
    rows = []
    for draft in drafts:
        conversation = draft.key.conversation_id
        rows.append(_row(draft, *texts[conversation], seq=next_seq[conversation]))
        next_seq[conversation] += 1
    return rows


def _row(draft: _Draft, conversation_id: str, scope_id: str, *, seq: int) -> TurnRow:
    turn = draft.turn
    return {
        "conversation_id": conversation_id,
        "seq": seq,
        "turn_id": str(draft.turn_id),
        "scope_id": scope_id,
        "client_turn_id": turn.client_turn_id,
        "body_sha256": hex_bytes(draft.body_sha256),
        "role": turn.role,
        "speaker": turn.speaker,
        "content": turn.content,
        "parts": turn.parts,
        "metadata": turn.metadata,
        "kind": turn.kind,
        "lang": draft.lang,
        "occurred_at": turn.occurred_at.isoformat(),
        "utc_offset_minutes": (turn.occurred_at.utcoffset() or ZERO) // MINUTE,
    }


def _receipt(key: TurnKey, external_id: str, recorded: RecordedTurn, *, duplicate: bool) -> Receipt:
    return Receipt(
        client_turn_id=key.client_turn_id,
        turn_id=recorded.turn_id,
        conversation_id=external_id,
        seq=recorded.seq,
        position=recorded.position,
        body_sha256=recorded.body_sha256,
        duplicate=duplicate,
    )
