"""Postings: which terms an owner has and how often, for lexical search that row level security cannot slow down."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.turn_marks import Marks
from memoryos_pipeline.store.vectors import REMOVE_POSTINGS

NO_MARKS: Mapping[UUID, Marks] = MappingProxyType({})

PUT_POSTINGS = text("""
    insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf, terms)
    select :tenant_id, :scope_id, term, :owner_kind, owner_id, tf, terms
      from unnest(cast(:owner_ids as uuid[]), cast(:terms as text[]), cast(:counts as integer[]),
                  cast(:lengths as integer[])) as given(owner_id, term, tf, terms)
     order by term, owner_id
    on conflict (tenant_id, scope_id, term, owner_kind, owner_id) do update
       set tf = excluded.tf, terms = excluded.terms
""")
PUT_LENGTHS = text("""
    insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms, conversation_id, seq, at,
                                         speaker, asks_only, ends_asking, tells_time)
    select :tenant_id, :scope_id, :owner_kind, given.owner_id, given.terms, t.conversation_id, t.seq, t.occurred_at,
           t.speaker, given.asks_only, given.ends_asking, given.tells_time
      from unnest(cast(:owner_ids as uuid[]), cast(:lengths as integer[]), cast(:asks_only as boolean[]),
                  cast(:ends_asking as boolean[]), cast(:tells_time as boolean[]))
           as given(owner_id, terms, asks_only, ends_asking, tells_time)
      left join memoryos.turn t
        on t.tenant_id = :tenant_id and t.turn_id = given.owner_id and :owner_kind = 'turn'
     order by given.owner_id
    on conflict (tenant_id, scope_id, owner_kind, owner_id) do update
       set terms = excluded.terms, asks_only = excluded.asks_only, ends_asking = excluded.ends_asking,
           tells_time = excluded.tells_time, marks_version = excluded.marks_version
""")


def put_postings(
    connection: Connection,
    tenant_id: UUID,
    scope_id: UUID,
    owner_kind: str,
    rows: Sequence[tuple[UUID, Sequence[str]]],
    *,
    marks: Mapping[UUID, Marks] = NO_MARKS,
) -> None:
    """Replace the postings and length of each owner; a row is (owner id, its terms with repeats).

    Where a turn stands and who said it is copied from the turn; `marks` are what was read of a text.
    """
    if not rows:
        return
    key = {"tenant_id": tenant_id, "scope_id": scope_id, "owner_kind": owner_kind}
    owners = {"owner_ids": [owner_id for owner_id, _ in rows]}
    connection.execute(REMOVE_POSTINGS, {**key, **owners})
    connection.execute(PUT_POSTINGS, {**key, **_columns(rows)})
    read = [marks.get(owner_id, Marks()) for owner_id, _ in rows]
    lengths = {
        "lengths": [len(terms) for _, terms in rows],
        "asks_only": [each.asks_only for each in read],
        "ends_asking": [each.ends_asking for each in read],
        "tells_time": [each.tells_time for each in read],
    }
    connection.execute(PUT_LENGTHS, {**key, **owners, **lengths})


def _columns(rows: Sequence[tuple[UUID, Sequence[str]]]) -> dict[str, list[Any]]:
    counted = list(_counted(rows))
    return {
        "owner_ids": [owner_id for owner_id, _, _, _ in counted],
        "terms": [term for _, term, _, _ in counted],
        "counts": [count for _, _, count, _ in counted],
        "lengths": [length for _, _, _, length in counted],
    }


def _counted(rows: Sequence[tuple[UUID, Sequence[str]]]) -> Iterator[tuple[UUID, str, int, int]]:
    for owner_id, terms in rows:
        for term, count in Counter(terms).items():
            yield owner_id, term, count, len(terms)
