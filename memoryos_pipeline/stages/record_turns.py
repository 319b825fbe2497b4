"""Recording turns: one transaction for the counters, the turns, the event and the work that is owed.

A conversation is opened by its first turn, and closed here too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.domain import ids
from memoryos_pipeline.domain.errors import ContendedError, NotFoundError, TurnConflictError
from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.domain.paging import leaves_hot
from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.domain.turn_body import MAX_TURNS, canonical_turn, hash_canonical
from memoryos_pipeline.domain.turns import NewTurn, Receipt
from memoryos_pipeline.domain.work import Owed, WorkKind
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.store.database import Database, try_again
from memoryos_pipeline.store.found import local_time
from memoryos_pipeline.store.hot import TailTurn
from memoryos_pipeline.store.hot_copy import HotCopies
from memoryos_pipeline.store.ledger import owe
from memoryos_pipeline.store.policies import load_policies
from memoryos_pipeline.store.turns import (
    ConversationShare,
    OpenedConversation,
    TurnRow,
    find_turns,
    insert_turns,
    lock_conversations,
    mark_closed,
    open_conversations,
)

MAX_TRIES = 5
ZERO, MINUTE = timedelta(), timedelta(minutes=1)
RETRYABLE = frozenset({"40001", "40P01", "23503", "23505"})
"""Serialization failure, deadlock, a scope erased between two of our statements, and a conversation that two
requests created at once: an upsert waits on one unique key only, the other one raises."""


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """One conversation of a request; told apart by identity, which costs nothing to hash."""

    conversation_id: UUID
    scope_id: UUID
    conversation_text: str
    scope_text: str


class _Draft(NamedTuple):
    """One turn with everything that can be worked out before the transaction."""

    turn: NewTurn
    place: _Place
    turn_key: str
    canonical: str
    body_sha256: bytes
    lang: str


@dataclass(frozen=True, slots=True)
class _Added:
    """What one request has added to one conversation."""

    conversation_id: UUID
    sealed_through: int
    position: int
    numbered: Sequence[tuple[int, _Draft]]

    def turns(self) -> list[TailTurn]:
        """Return the turns as a copy of the hot tail has them."""
        return [
            TailTurn(
                seq, UUID(draft.turn_key), self.position, draft.turn.client_turn_id, draft.turn.role,
                draft.turn.speaker, draft.turn.content, draft.lang,
                local_time(draft.turn.occurred_at, _offset_minutes(draft.turn)), draft.turn.kind,
            )
            for seq, draft in self.numbered
        ]  # fmt: skip


class _SomePresentError(Exception):
    """A turn of the request was recorded before; the transaction is rolled back and looks first."""


def record_turns(
    database: Database,
    tenant_id: UUID,
    turns: Sequence[NewTurn],
    *,
    policy: Policy,
    max_attempts: int,
    hot_copies: HotCopies | None = None,
) -> list[Receipt]:
    """Record up to 1,000 turns, all or none, and return their receipts in order.

    A turn that was recorded before gets its first receipt again with `duplicate` set. After the commit what is new is
    added to the copies of its hot tails, where copies are kept.
    Raises TurnConflictError, ErasedScopeError, ContendedError.
    """
    if not 1 <= len(turns) <= MAX_TURNS:
        message = f"record 1 to {MAX_TURNS} turns at a time"
        raise ValueError(message)
    recorder = _Recorder(database, tenant_id, turns, policy=policy, max_attempts=max_attempts)
    receipts = recorder.record()
    if hot_copies is not None:
        for added in recorder.added:
            hot_copies.append(
                tenant_id, added.conversation_id, added.turns(), sealed_through=added.sealed_through
            )  # fmt: skip
    return receipts


def close_conversation(
    database: Database, tenant_id: UUID, *, scope_id: UUID, conversation_id: str, max_attempts: int
) -> None:
    """Close a conversation, so that all its turns are sealed. A new turn opens it again. Raises NotFoundError."""
    conversation = ids.conversation_id(scope_id, conversation_id)

    def close() -> None:
        with database.transaction(tenant_id) as connection:
            if not mark_closed(connection, tenant_id, conversation):
                raise NotFoundError
            owed = [Owed(WorkKind.ADVANCE, str(conversation), scope_id)]
            owe(connection, tenant_id, owed, max_attempts=max_attempts)

    try_again(close)


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
        self._once = _without_repeats(self._drafts)
        self.added: list[_Added] = []

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
        self.added = []
        with self._database.transaction(self._tenant_id) as connection:
            receipts = self._look(connection) if look_first else {}
            fresh = [draft for draft in self._once if draft.turn_key not in receipts]
            if fresh:
                receipts |= self._insert(connection, fresh)
            reach("before_commit", "turns")
        return self._in_order(receipts)

    def _look(self, connection: Connection) -> dict[str, Receipt]:
        conversations = sorted({draft.place.conversation_id for draft in self._once})
        lock_conversations(connection, self._tenant_id, conversations)
        known = find_turns(connection, self._tenant_id, [draft.turn_key for draft in self._once])
        receipts = {}
        for draft in self._once:
            recorded = known.get(draft.turn_key)
            if recorded is None:
                continue
            if recorded.body_sha256 != draft.body_sha256:
                raise TurnConflictError(draft.turn.client_turn_id)
            receipts[draft.turn_key] = _receipt(draft, recorded.seq, recorded.position, duplicate=True)
        return receipts

    def _insert(self, connection: Connection, fresh: Sequence[_Draft]) -> dict[str, Receipt]:
        shares = _shares(fresh)
        opened = open_conversations(connection, self._tenant_id, [share for share, _ in shares])
        numbered_of = {
            share.conversation_id: list(enumerate(drafts, start=opened[share.conversation_id].next_seq - share.turns))
            for share, drafts in shares
        }
        numbered = [each for together in numbered_of.values() for each in together]
        rows = [_row(draft, seq) for seq, draft in numbered]
        users = {share.user_id for share, _ in shares}
        inserted, position = insert_turns(connection, self._tenant_id, rows, users=users)
        if inserted < len(rows):
            raise _SomePresentError
        self._owe_advance(connection, shares, opened)
        self.added = [
            _Added(conversation, opened[conversation].sealed_through, position, together)
            for conversation, together in numbered_of.items()
        ]
        return {draft.turn_key: _receipt(draft, seq, position, duplicate=False) for seq, draft in numbered}

    def _owe_advance(
        self,
        connection: Connection,
        shares: Sequence[tuple[ConversationShare, Sequence[_Draft]]],
        opened: dict[UUID, OpenedConversation],
    ) -> None:
        named = {each.policy_id for each in opened.values() if each.policy_id is not None}
        own = load_policies(connection, self._tenant_id, named) if named else {}
        owed = [
            Owed(WorkKind.ADVANCE, str(share.conversation_id), share.scope_id)
            for share, drafts in shares
            if _leaves_hot(opened[share.conversation_id], drafts, own, self._policy)
        ]
        owe(connection, self._tenant_id, owed, max_attempts=self._max_attempts)

    def _in_order(self, receipts: dict[str, Receipt]) -> list[Receipt]:
        ordered = [receipts[draft.turn_key] for draft in self._drafts]
        if len(self._once) < len(self._drafts):
            seen: set[str] = set()
            for position, receipt in enumerate(ordered):
                if receipt.turn_id in seen:
                    ordered[position] = receipt._replace(duplicate=True)
                seen.add(receipt.turn_id)
        return ordered


def _drafts(tenant_id: UUID, turns: Sequence[NewTurn]) -> list[_Draft]:
    # Deriving an id costs as much as checking a turn, and most turns of a request share their conversation.
    places: dict[tuple[str, str, str], _Place] = {}
    drafts = []
    for turn in turns:
        name = (turn.user_id, turn.agent_id, turn.conversation_id)
        if name not in places:
            scope = ids.scope_id(tenant_id, turn.user_id, turn.agent_id)
            conversation = ids.conversation_id(scope, turn.conversation_id)
            places[name] = _Place(conversation, scope, str(conversation), str(scope))
        drafts.append(_draft(turn, places[name]))
    return drafts


def _draft(turn: NewTurn, place: _Place) -> _Draft:
    turn_key = ids.turn_key(place.conversation_text, turn.client_turn_id)
    canonical, lang = canonical_turn(turn), detect_language(turn.content)
    return _Draft(turn, place, turn_key, canonical, hash_canonical(canonical), lang)


def _without_repeats(drafts: Sequence[_Draft]) -> list[_Draft]:
    first: dict[str, _Draft] = {}
    for draft in drafts:
        if first.setdefault(draft.turn_key, draft).body_sha256 != draft.body_sha256:
            raise TurnConflictError(draft.turn.client_turn_id)
    return list(first.values())


def _shares(drafts: Sequence[_Draft]) -> list[tuple[ConversationShare, list[_Draft]]]:
    together: dict[_Place, list[_Draft]] = {}
    for draft in drafts:
        together.setdefault(draft.place, []).append(draft)
    ordered = sorted(together, key=lambda place: place.conversation_id)
    return [(_share(place, together[place]), together[place]) for place in ordered]


def _share(place: _Place, drafts: Sequence[_Draft]) -> ConversationShare:
    turn = drafts[0].turn
    return ConversationShare(
        conversation_id=place.conversation_id,
        scope_id=place.scope_id,
        external_id=turn.conversation_id,
        user_id=turn.user_id,
        agent_id=turn.agent_id,
        turns=len(drafts),
        last_turn_at=max(draft.turn.occurred_at for draft in drafts),
        tail_turn_at=drafts[-1].turn.occurred_at,
        user_turns=sum(draft.turn.role == "user" for draft in drafts),
    )


def _leaves_hot(
    conversation: OpenedConversation, drafts: Sequence[_Draft], own: Mapping[str, Policy], default: Policy
) -> bool:
    policy = own.get(conversation.policy_id, default) if conversation.policy_id is not None else default
    unsealed = conversation.next_seq - 1 - conversation.sealed_through
    return leaves_hot(
        unsealed=unsealed,
        before=conversation.before_turn_at if unsealed > len(drafts) else None,
        moments=[draft.turn.occurred_at for draft in drafts],
        policy=policy,
    )


def _row(draft: _Draft, seq: int) -> TurnRow:
    return TurnRow(
        conversation=draft.place.conversation_text,
        seq=seq,
        turn_id=draft.turn_key,
        scope=draft.place.scope_text,
        sha256=draft.body_sha256,
        lang=draft.lang,
        utc_offset_minutes=_offset_minutes(draft.turn),
        canonical=draft.canonical,
    )


def _offset_minutes(turn: NewTurn) -> int:
    return (turn.occurred_at.utcoffset() or ZERO) // MINUTE


def _receipt(draft: _Draft, seq: int, position: int, *, duplicate: bool) -> Receipt:
    return Receipt(
        client_turn_id=draft.turn.client_turn_id,
        turn_id=draft.turn_key,
        conversation_id=draft.turn.conversation_id,
        seq=seq,
        position=position,
        body_sha256=draft.body_sha256,
        duplicate=duplicate,
    )
