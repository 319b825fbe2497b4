"""Reads again what was indexed before marks were read, or by older rules. Recall works meanwhile, and ranks worse."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.turn_marks import MARKS_VERSION, read_marks
from memoryos_pipeline.store.database import Database, try_again

BATCH = 500
COUNT_UNREAD = text("""
    select count(*) from memoryos.posting_length
     where tenant_id = :tenant_id and owner_kind = 'turn' and marks_version < :version
""")
# A turn that is gone is no concern of marks: what may not be in an index is found elsewhere.
FIND_UNREAD = text("""
    select l.scope_id, l.owner_id, t.content
      from (select scope_id, owner_id from memoryos.posting_length
             where tenant_id = :tenant_id and owner_kind = 'turn' and marks_version < :version
               and (scope_id, owner_id) > (cast(:scope_id as uuid), cast(:owner_id as uuid))
             order by scope_id, owner_id limit :batch) l
      left join memoryos.turn t on t.tenant_id = :tenant_id and t.turn_id = l.owner_id
     order by l.scope_id, l.owner_id
""")
PUT_MARKS = text("""
    with mine as (
        select l.scope_id, l.owner_id, given.asks_only, given.ends_asking, given.tells_time
          from unnest(cast(:scope_ids as uuid[]), cast(:owner_ids as uuid[]), cast(:asks_only as boolean[]),
                      cast(:ends_asking as boolean[]), cast(:tells_time as boolean[]))
               as given(scope_id, owner_id, asks_only, ends_asking, tells_time)
          join memoryos.posting_length l
            on l.tenant_id = :tenant_id and l.scope_id = given.scope_id and l.owner_kind = 'turn'
           and l.owner_id = given.owner_id
         order by l.scope_id, l.owner_id for update of l
    )
    update memoryos.posting_length l
       set asks_only = mine.asks_only, ends_asking = mine.ends_asking, tells_time = mine.tells_time,
           marks_version = :version
      from mine
     where l.tenant_id = :tenant_id and l.scope_id = mine.scope_id and l.owner_kind = 'turn'
       and l.owner_id = mine.owner_id
""")


class Place(NamedTuple):
    """Where a batch ended."""

    scope_id: UUID
    owner_id: UUID


START = Place(UUID(int=0), UUID(int=0))


def count_unread(connection: Connection, tenant_id: UUID) -> int:
    """Return how many indexed turns of a tenant were read by older rules than ours, or by none."""
    count: int = connection.execute(COUNT_UNREAD, {"tenant_id": tenant_id, "version": MARKS_VERSION}).scalar_one()
    return count


def read_again(owner: Database, tenant_id: UUID) -> int:
    """Read such turns again, a batch a transaction; return how many there were. A second run finds none."""
    place, read = START, 0
    while True:
        after, count = try_again(partial(_read_batch, owner, tenant_id, place))
        if after is None:
            return read
        place, read = after, read + count


def _read_batch(owner: Database, tenant_id: UUID, place: Place) -> tuple[Place | None, int]:
    values = {"tenant_id": tenant_id, "version": MARKS_VERSION, "batch": BATCH, **place._asdict()}
    with owner.transaction(tenant_id) as connection:
        rows = connection.execute(FIND_UNREAD, values).all()
        if not rows:
            return None, 0
        known = [(row.scope_id, row.owner_id, row.content) for row in rows if row.content is not None]
        _put(connection, tenant_id, known)
    return Place(rows[-1].scope_id, rows[-1].owner_id), len(known)


def _put(connection: Connection, tenant_id: UUID, known: Sequence[tuple[UUID, UUID, str]]) -> None:
    marks = [read_marks(content) for _, _, content in known]
    values = {
        "tenant_id": tenant_id,
        "version": MARKS_VERSION,
        "scope_ids": [scope_id for scope_id, _, _ in known],
        "owner_ids": [owner_id for _, owner_id, _ in known],
        "asks_only": [each.asks_only for each in marks],
        "ends_asking": [each.ends_asking for each in marks],
        "tells_time": [each.tells_time for each in marks],
    }
    connection.execute(PUT_MARKS, values)
