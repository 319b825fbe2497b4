"""Postings: which terms an owner has and how often, for lexical search that row level security cannot slow down."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.store.vectors import REMOVE_POSTINGS

PUT_POSTINGS = text("""
    insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf)
    select :tenant_id, :scope_id, term, :owner_kind, owner_id, tf
      from unnest(cast(:owner_ids as uuid[]), cast(:terms as text[]), cast(:counts as integer[]))
           as given(owner_id, term, tf)
     order by term, owner_id
    on conflict (tenant_id, scope_id, term, owner_kind, owner_id) do update set tf = excluded.tf
""")
PUT_LENGTHS = text("""
    insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms)
    select :tenant_id, :scope_id, :owner_kind, owner_id, terms
      from unnest(cast(:owner_ids as uuid[]), cast(:lengths as integer[])) as given(owner_id, terms)
     order by owner_id
    on conflict (tenant_id, scope_id, owner_kind, owner_id) do update set terms = excluded.terms
""")


def put_postings(
    connection: Connection, tenant_id: UUID, scope_id: UUID, owner_kind: str, rows: Sequence[tuple[UUID, Sequence[str]]]
) -> None:
    """Replace the postings and length of each owner; a row is (owner id, its terms with repeats)."""
    if not rows:
        return
    key = {"tenant_id": tenant_id, "scope_id": scope_id, "owner_kind": owner_kind}
    owners = {"owner_ids": [owner_id for owner_id, _ in rows]}
    connection.execute(REMOVE_POSTINGS, {**key, **owners})
    connection.execute(PUT_POSTINGS, {**key, **_columns(rows)})
    connection.execute(PUT_LENGTHS, {**key, **owners, "lengths": [len(terms) for _, terms in rows]})


def _columns(rows: Sequence[tuple[UUID, Sequence[str]]]) -> dict[str, list[Any]]:
    counted = list(_counted(rows))
    return {
        "owner_ids": [owner_id for owner_id, _, _ in counted],
        "terms": [term for _, term, _ in counted],
        "counts": [count for _, _, count in counted],
    }


def _counted(rows: Sequence[tuple[UUID, Sequence[str]]]) -> Iterator[tuple[UUID, str, int]]:
    for owner_id, terms in rows:
        for term, count in Counter(terms).items():
            yield owner_id, term, count
