"""The recent turns of a read: from their copy where it stands as Postgres does, else from Postgres, and put back."""

from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection

from memoryos_pipeline.domain.ids import conversation_id
from memoryos_pipeline.recall.parts import RecallParts
from memoryos_pipeline.store.found import FoundTurn, read_hot_turns
from memoryos_pipeline.store.hot import Stamp, TailTurn, as_found, fitting, load_tail_turns, read_stamp
from memoryos_pipeline.store.hot_copy import MOST_COPIED, HotCopies
from memoryos_pipeline.store.search import ScopeKey


@dataclass
class HotTail:
    """One read of a tail in three steps: `look` before the connection is taken, `read` under it, `put_back` after.

    Without a copy to look for (none is kept, or nobody says which conversation is going on) Postgres answers.
    """

    copies: HotCopies | None
    key: ScopeKey
    external_id: str | None
    _copy: list[TailTurn] = field(default_factory=list)
    _missing: tuple[Stamp, list[TailTurn]] | None = None

    def look(self) -> "HotTail":
        """Ask for the copy."""
        if self.copies is not None and self.external_id is not None:
            self._copy = self.copies.read(self.key.tenant_id, self._conversation_id)
        return self

    def read(self, connection: Connection) -> list[FoundTurn]:
        """Return the hot turns, newest first, as they are in this transaction."""
        stamp = None
        if self.copies is not None and self.external_id is not None:
            stamp = read_stamp(connection, self.key, self._conversation_id)
        if self.copies is None or stamp is None or stamp.hot > MOST_COPIED:
            return read_hot_turns(connection, self.key, external_id=self.external_id)
        turns = fitting(self._copy, stamp) if stamp.hot else []
        if turns is None:
            turns = load_tail_turns(connection, self.key, self._conversation_id, stamp)
            self._missing = (stamp, turns)
        self.copies.note("stale" if self._missing else "used")
        return as_found(turns, conversation_id=self._conversation_id, external_id=self.external_id or "")

    def put_back(self) -> None:
        """Put what was read from Postgres in the place of what did not fit."""
        if self.copies is not None and self._missing is not None:
            stamp, turns = self._missing
            self.copies.replace(
                self.key.tenant_id, self._conversation_id, turns, sealed_through=stamp.sealed_through
            )  # fmt: skip

    @property
    def _conversation_id(self) -> UUID:
        return conversation_id(self.key.scope_id, self.external_id or "")


def read_tail(parts: RecallParts, key: ScopeKey, external_id: str) -> list[FoundTurn]:
    """Return the hot turns of a conversation, newest first; none for a conversation nobody has heard of."""
    tail = HotTail(parts.hot_copies, key, external_id).look()
    with parts.database.transaction(key.tenant_id) as connection:
        turns = tail.read(connection)
    tail.put_back()
    return turns
