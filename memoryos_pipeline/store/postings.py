"""Postings: which terms an owner has and how often, for lexical search that row level security cannot slow down."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
FIND_POSTINGS = text("""
    select term, owner_kind, owner_id, tf from memoryos.posting
     where tenant_id = :tenant_id and scope_id = :scope_id and term = any(cast(:terms as text[]))
       and owner_kind = any(cast(:owner_kinds as text[]))
""")


@dataclass(frozen=True, slots=True)
class Posting:
    """One term of one owner; `tf` is how often it occurs there."""

    term: str
    owner_kind: str
    owner_id: UUID
    tf: int


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


def find_postings(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, owner_kinds: Sequence[str], terms: Sequence[str]
) -> list[Posting]:
    """Return every posting of these terms in a scope; no order."""
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "owner_kinds": list(owner_kinds),
        "terms": sorted(set(terms)),
    }
    return [Posting(*row) for row in connection.execute(FIND_POSTINGS, values)]


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
