"""Erasing a user: the hash that stays, the lock that erasing and recording share, and the one transaction."""

import hashlib
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from memoryos_pipeline.domain.errors import ContendedError, ErasedScopeError, MemoryosError, NotFoundError
from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.failpoints import reach
from memoryos_pipeline.store.database import Database, sqlstate_of

MAX_WAIT_SECONDS = 60
LOST_TO_OTHERS = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock and lock timeout: nothing was erased, and trying again can succeed."""

# Stages lock what is ours in their own order: a conversation before its memory, or after it. So erasing gives way
# well before Postgres looks for a deadlock (1 s), and it is never a stage that is chosen to fail.
PREPARE = text("""
    select set_config('statement_timeout', '15min', true), set_config('lock_timeout', '300ms', true),
           pg_advisory_xact_lock(:lock_key)
""")
HOLD_OFF = text("select pg_advisory_xact_lock_shared(:lock_key)")
ERASED = text("select from memoryos.deletion_ledger where tenant_id = :tenant_id and subject_hash = :subject_hash")
LEDGER = text("""
    insert into memoryos.deletion_ledger (tenant_id, subject_hash) values (:tenant_id, :subject_hash)
    on conflict do nothing returning subject_hash
""")
SCOPES = text("""
    select scope_id from memoryos.scope where tenant_id = :tenant_id and user_id = :user_id order by scope_id for update
""")
CONVERSATIONS = text("""
    select conversation_id from memoryos.conversation
     where tenant_id = :tenant_id and scope_id = any(cast(:scopes as uuid[]))
""")
REMOVE_SCOPES = text("delete from memoryos.scope where tenant_id = :tenant_id and user_id = :user_id")
REMOVE_POLICIES = text("delete from memoryos.policy where tenant_id = :tenant_id and user_id = :user_id")
OPEN_RECEIPT = text("""
    insert into memoryos.erasure_receipt (tenant_id, receipt_id, subject_hash)
    values (:tenant_id, :receipt_id, :subject_hash)
""")
CLOSE_RECEIPT = text("""
    update memoryos.erasure_receipt set done_at = clock_timestamp(), rows_removed = :rows_removed
     where tenant_id = :tenant_id and receipt_id = :receipt_id
""")

TABLES_OF_A_SCOPE = (
    "scope", "conversation", "turn", "page", "segment", "candidate", "knowledge", "knowledge_past", "rollup",
    "knowledge_link", "verdict", "entity", "relation", "trait", "embedding", "posting", "posting_length",
    "work", "llm_call", "event", "access_event",
)  # fmt: skip
"""Every table whose rows belong to one memory; they go with its scope."""

TABLES_OF_A_PART = {
    "page_segment": ("page", "page_id"),
    "knowledge_source": ("knowledge", "knowledge_id"),
    "turn_left": ("conversation", "conversation_id"),
    "knowledge_note": ("knowledge", "knowledge_id"),
    "mention": ("knowledge", "knowledge_id"),
    "dead_letter": ("work", "work_id"),
}
"""Tables whose rows belong to a row of a memory: the parent and the column that names it."""

TABLES_THAT_STAY = frozenset(
    {"tenant", "api_key", "reader_grant", "tally", "budget", "reservation", "erasure_receipt", "deletion_ledger"}
)
"""Tables without anything a user said or is; the last two know a user by hash alone."""

COUNT_IN_SCOPE = "select count(*) as n from memoryos.{table} where tenant_id = :tenant_id and scope_id = any(:scopes)"
COUNT_IN_PART = """
    select count(*) from memoryos.{table} c join memoryos.{parent} p on p.tenant_id = c.tenant_id and p.{key} = c.{key}
     where c.tenant_id = :tenant_id and p.scope_id = any(:scopes)
"""
COUNT_POLICIES = "select count(*) from memoryos.policy where tenant_id = :tenant_id and user_id = :user_id"


def _count_everything() -> str:
    counts = [COUNT_IN_SCOPE.format(table=table) for table in TABLES_OF_A_SCOPE]
    counts += [
        COUNT_IN_PART.format(table=table, parent=parent, key=key) for table, (parent, key) in TABLES_OF_A_PART.items()
    ]
    return f"select cast(sum(n) as bigint) from ({' union all '.join([*counts, COUNT_POLICIES])}) counts"  # noqa: S608


COUNT = text(_count_everything().replace(":scopes", "cast(:scopes as uuid[])"))


class ErasureIncompleteError(MemoryosError):
    """Rows of the user were left; nothing was erased, and nothing was promised."""


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Proof of an erasure: how many rows went. It names the user by hash only.

    `conversation_ids` are whatever is copied elsewhere under; they are derived from names and tell none.
    """

    receipt_id: UUID
    rows_removed: int
    conversation_ids: tuple[UUID, ...] = ()


def subject_hash(tenant_id: UUID, user_id: str) -> bytes:
    """Return the hash that stays when a user is erased: SHA-256 of tenant and user, 32 bytes."""
    return hashlib.sha256(f"{tenant_id}|{user_id}".encode()).digest()


def subject_lock_key(tenant_id: UUID, user_id: str) -> int:
    """Return the advisory lock of a user: recording takes it shared, erasing takes it exclusively.

    Whoever erases first commits nothing before it holds the lock, so no turn slips in behind the erasure.
    """
    return int.from_bytes(subject_hash(tenant_id, user_id)[:8], "big", signed=True)


def refuse_erased(connection: Connection, tenant_id: UUID, user_id: str) -> None:
    """Keep this user from being erased until the commit. Raises ErasedScopeError when they are already."""
    connection.execute(HOLD_OFF, {"lock_key": subject_lock_key(tenant_id, user_id)})
    values = {"tenant_id": tenant_id, "subject_hash": subject_hash(tenant_id, user_id)}
    if connection.execute(ERASED, values).first() is not None:
        raise ErasedScopeError


def erase_user(database: Database, tenant_id: UUID, user_id: str) -> ErasureReceipt:
    """Erase everything of a user in one transaction, and return only when nothing is left.

    Repeating it is safe and erases whatever is found. Raises NotFoundError for a user nobody has heard of,
    ErasureIncompleteError (and rolls back) when a row survived, ContendedError when stages were in the way throughout.
    """
    give_up_at = monotonic() + MAX_WAIT_SECONDS
    while monotonic() < give_up_at:
        try:
            return _erase(database, tenant_id, user_id)
        except DBAPIError as error:
            if sqlstate_of(error) not in LOST_TO_OTHERS:
                raise
    raise ContendedError


def _erase(database: Database, tenant_id: UUID, user_id: str) -> ErasureReceipt:
    subject = {"tenant_id": tenant_id, "user_id": user_id, "subject_hash": subject_hash(tenant_id, user_id)}
    with database.transaction(tenant_id) as connection:
        connection.execute(PREPARE, {"lock_key": subject_lock_key(tenant_id, user_id)})
        is_new = connection.execute(LEDGER, subject).first() is not None
        reach("after_tombstone", "erase")
        values = {**subject, "scopes": list(connection.execute(SCOPES, subject).scalars())}
        rows = _count(connection, values)
        if is_new and not rows:
            raise NotFoundError
        receipt = ErasureReceipt(mint_id(), rows, tuple(connection.execute(CONVERSATIONS, values).scalars()))
        connection.execute(OPEN_RECEIPT, {**subject, "receipt_id": receipt.receipt_id})
        _remove(connection, values)
        connection.execute(
            CLOSE_RECEIPT, {"tenant_id": tenant_id, "receipt_id": receipt.receipt_id, "rows_removed": rows}
        )
    return receipt


def _remove(connection: Connection, values: dict[str, Any]) -> None:
    connection.execute(REMOVE_SCOPES, values)
    connection.execute(REMOVE_POLICIES, values)
    if _count(connection, values):
        raise ErasureIncompleteError


def _count(connection: Connection, values: dict[str, Any]) -> int:
    rows: int = connection.execute(COUNT, values).scalar_one()
    return rows
