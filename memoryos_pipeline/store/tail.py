"""The hot turns of a conversation as they are indexed ahead of their page, and what of any turns is indexed already."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.store.recallable import IS_MARKED
from memoryos_pipeline.store.vectors import FIND_SPACE, SpaceOwner, space_values

_HOT = """
    select t.turn_id, t.seq, t.content, t.lang
      from memoryos.conversation c
      join memoryos.turn t on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id
                          and t.seq > c.sealed_through
     where c.tenant_id = :tenant_id and c.conversation_id = :conversation_id and t.kind = 'normal' and not IS_MARKED
""".replace("IS_MARKED", IS_MARKED)
LOAD_HOT = text(f"{_HOT} order by t.seq limit :limit")
FIND_HOT = text(f"{_HOT} and t.seq <= :through for key share of t")
COUNTED = text("""
    select next_seq - 1 from memoryos.conversation
     where tenant_id = :tenant_id and conversation_id = :conversation_id
""")
MARK_AHEAD = text("""
    update memoryos.conversation set ahead_through = greatest(ahead_through, least(:through, next_seq - 1))
     where tenant_id = :tenant_id and conversation_id = :conversation_id
""")
DIGESTS = text("""
    select owner_id, input_sha256 from memoryos.embedding
     where tenant_id = :tenant_id and space_id = :space_id and owner_kind = 'turn'
       and owner_id = any(cast(:owner_ids as uuid[]))
""")

MOST_HOT = 500
"""Turns indexed ahead in one run; a tail this long is a backlog, which pages work off."""


@dataclass(frozen=True, slots=True)
class HotTurn:
    """A turn that belongs to no page yet."""

    turn_id: UUID
    seq: int
    content: str
    lang: str


@dataclass(frozen=True, slots=True)
class Tail:
    """The hot turns that may be recalled, and up to which turn that is all of them."""

    turns: tuple[HotTurn, ...]
    through: int


def load_tail(connection: Connection, tenant_id: UUID, conversation_id: UUID) -> Tail | None:
    """Return the oldest hot turns of a conversation; None when it is gone."""
    key = {"tenant_id": tenant_id, "conversation_id": conversation_id}
    counted = connection.execute(COUNTED, key).scalar()
    if counted is None:
        return None
    turns = tuple(HotTurn(*row) for row in connection.execute(LOAD_HOT, {**key, "limit": MOST_HOT}))
    return Tail(turns, int(counted) if len(turns) < MOST_HOT else turns[-1].seq)


def find_hot(connection: Connection, tenant_id: UUID, conversation_id: UUID, *, through: int) -> set[UUID]:
    """Return which turns up to `through` are still hot and may be recalled; under the conversation's lock."""
    values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "through": through}
    return set(connection.execute(FIND_HOT, values).scalars())


def mark_ahead(connection: Connection, tenant_id: UUID, conversation_id: UUID, *, through: int) -> None:
    """Note that all turns up to `through` were indexed while they were hot."""
    values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "through": through}
    connection.execute(MARK_AHEAD, values)


def read_digests(
    connection: Connection, tenant_id: UUID, embedder: SpaceOwner, owner_ids: Sequence[UUID]
) -> dict[UUID, bytes]:
    """Return the SHA-256 of the text that each of these turns has a vector of, in this embedder's space."""
    space_id = connection.execute(FIND_SPACE, space_values(embedder)).scalar()
    if space_id is None or not owner_ids:
        return {}
    values = {"tenant_id": tenant_id, "space_id": space_id, "owner_ids": list(owner_ids)}
    return {owner_id: bytes(digest) for owner_id, digest in connection.execute(DIGESTS, values)}
