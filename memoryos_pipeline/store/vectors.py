"""Vectors: which model made them, where they are kept, and who is nearest within one scope.

Exact by a scan of the scope; a space that holds very large scopes may be given an approximate index.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

FIND_SPACE = text("""
    select space_id from memoryos.vector_space
     where model = :model and revision = :revision and dimensions = :dimensions and token_cap = :token_cap
""")
CREATE_SPACE = text("""
    insert into memoryos.vector_space (model, revision, dimensions, token_cap)
    values (:model, :revision, :dimensions, :token_cap) on conflict do nothing
""")
PUT_VECTORS = text("""
    insert into memoryos.embedding (tenant_id, scope_id, space_id, owner_kind, owner_id, vec, input_sha256,
                                    tokens, truncated)
    select :tenant_id, :scope_id, :space_id, :owner_kind, owner_id, cast(vec as public.halfvec), input_sha256,
           tokens, truncated
      from unnest(cast(:owner_ids as uuid[]), cast(:vectors as text[]), cast(:digests as bytea[]),
                  cast(:tokens as integer[]), cast(:truncated as boolean[]))
           as given(owner_id, vec, input_sha256, tokens, truncated)
     order by owner_id
    on conflict (tenant_id, space_id, owner_kind, owner_id) do update
       set vec = excluded.vec, input_sha256 = excluded.input_sha256, tokens = excluded.tokens,
           truncated = excluded.truncated, scope_id = excluded.scope_id
""")
GET_VECTORS = text("""
    select owner_id, cast(vec as real[]) from memoryos.embedding
     where tenant_id = :tenant_id and space_id = :space_id and owner_kind = :owner_kind
       and owner_id = any(cast(:owner_ids as uuid[]))
""")
# Exact: the bare column, which no approximate index serves.
NEAREST = """
    select owner_kind, owner_id, 1 - distance as cosine
      from (select owner_kind, owner_id, vec <=> cast(:vector as public.halfvec(DIMENSIONS)) as distance
              from memoryos.embedding
             where tenant_id = :tenant_id and scope_id = :scope_id and space_id = :space_id
               and owner_kind = any(cast(:owner_kinds as text[]))
             order by vec <=> cast(:vector as public.halfvec(DIMENSIONS)) limit :limit) near
     order by distance, owner_kind, owner_id
"""
# Approximate: the expression and the space, written out, of the index that `store.approximate` builds.
NEAREST_HNSW = """
    select owner_kind, owner_id, 1 - distance as cosine
      from (select owner_kind, owner_id,
                   cast(vec as public.halfvec(DIMENSIONS)) <=> cast(:vector as public.halfvec(DIMENSIONS)) as distance
              from memoryos.embedding
             where space_id = SPACE_ID and tenant_id = :tenant_id and scope_id = :scope_id
               and owner_kind = any(cast(:owner_kinds as text[]))
             order by cast(vec as public.halfvec(DIMENSIONS)) <=> cast(:vector as public.halfvec(DIMENSIONS))
             limit :limit) near
     order by distance, owner_kind, owner_id
"""
WITHIN = """
               and exists (select from memoryos.posting_length l
                            where l.tenant_id = :tenant_id and l.scope_id = :scope_id and l.owner_kind = 'turn'
                              and l.owner_id = embedding.owner_id and l.at >= :starts_at and l.at < :ends_at)
             order by"""
"""What is said in a span of time."""
AMONG = """
               and owner_id = any(cast(:among as uuid[]))
             order by"""
"""Only these."""
# Without a sort only the index gives the order; a scan goes on until the filters leave enough. A plan that knows its
# values keeps a long list of owners as a hash table.
USE_HNSW = text("""
    select set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'strict_order', true),
           set_config('hnsw.ef_search', '400', true), set_config('hnsw.max_scan_tuples', '200000', true),
           set_config('plan_cache_mode', 'force_custom_plan', true)
""")
LEAVE_HNSW = text("select set_config('enable_sort', 'on', true), set_config('plan_cache_mode', 'auto', true)")
NEAR_LAYOUT = (("owner_id", "S16"), ("kind", ">i4"), ("cosine", ">f8"))
"""`kind` is a place in the list that was asked for, from 1."""
NEAR_BYTES = 28
PACKED = """
    select string_agg(uuid_send(owner_id) || int4send(array_position(cast(:known_kinds as text[]), owner_kind))
                      || float8send(cosine), '')
      from (NEAREST) found
"""
REMOVE_VECTORS = text("""
    delete from memoryos.embedding
     where tenant_id = :tenant_id and space_id in (select space_id from memoryos.vector_space)
       and owner_kind = :owner_kind and owner_id = any(cast(:owner_ids as uuid[]))
""")
REMOVE_POSTINGS = text("""
    delete from memoryos.posting
     where tenant_id = :tenant_id and owner_kind = :owner_kind and owner_id = any(cast(:owner_ids as uuid[]))
""")
REMOVE_LENGTHS = text("""
    delete from memoryos.posting_length
     where tenant_id = :tenant_id and owner_kind = :owner_kind and owner_id = any(cast(:owner_ids as uuid[]))
""")


class SpaceOwner(Protocol):
    """What names a vector space: any embedder."""

    @property
    def model(self) -> str: ...
    @property
    def revision(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def token_cap(self) -> int: ...


class VectorLike(Protocol):
    """What is stored of one text: any embedded result."""

    @property
    def vector(self) -> Iterable[float]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...


def ensure_space(connection: Connection, embedder: SpaceOwner) -> int:
    """Return the id of an embedder's vector space, naming it on first use. Callers may keep the answer."""
    values = space_values(embedder)
    found = connection.execute(FIND_SPACE, values).scalar()
    if found is None:
        connection.execute(CREATE_SPACE, values)
        found = connection.execute(FIND_SPACE, values).scalar_one()
    return int(found)


def space_values(embedder: SpaceOwner) -> dict[str, Any]:
    """Return what names an embedder's space, as statements take it."""
    return {name: getattr(embedder, name) for name in ("model", "revision", "dimensions", "token_cap")}


def put_vectors(
    connection: Connection,
    tenant_id: UUID,
    scope_id: UUID,
    space_id: int,
    owner_kind: str,
    rows: Sequence[tuple[UUID, VectorLike, bytes]],
) -> None:
    """Store vectors, replacing those the owners had in this space; a row is (owner id, embedded, SHA-256 of text)."""
    if not rows:
        return
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "space_id": space_id,
        "owner_kind": owner_kind,
        "owner_ids": [owner_id for owner_id, _, _ in rows],
        "vectors": [vector_text(embedded.vector) for _, embedded, _ in rows],
        "digests": [digest for _, _, digest in rows],
        "tokens": [embedded.tokens for _, embedded, _ in rows],
        "truncated": [embedded.truncated for _, embedded, _ in rows],
    }
    connection.execute(PUT_VECTORS, values)


def get_vectors(
    connection: Connection, tenant_id: UUID, *, space_id: int, owner_kind: str, owner_ids: Sequence[UUID]
) -> dict[UUID, list[float]]:
    """Return the vectors these owners have in a space, as they are stored (half precision)."""
    values = {"tenant_id": tenant_id, "space_id": space_id, "owner_kind": owner_kind, "owner_ids": list(owner_ids)}
    rows = connection.execute(GET_VECTORS, values).all() if owner_ids else []
    return {owner_id: list(vector) for owner_id, vector in rows}


def nearest(  # noqa: PLR0913, PLR0917 - the whole key of a search
    connection: Connection,
    tenant_id: UUID,
    scope_id: UUID,
    space_id: int,
    owner_kinds: Sequence[str],
    vector: Iterable[float],
    limit: int,
) -> list[tuple[str, UUID, float]]:
    """Return (owner kind, owner id, cosine) of the `limit` nearest, best first; exact, ties by id."""
    numbers = [float(number) for number in vector]
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "space_id": space_id,
        "owner_kinds": list(owner_kinds),
        "vector": vector_text(numbers),
        "limit": limit,
    }
    rows = connection.execute(nearest_query(len(numbers)), values)
    return [(kind, owner_id, float(cosine)) for kind, owner_id, cosine in rows]


@dataclass(frozen=True, slots=True)
class Near:
    """What to look for in one space: kinds, the vector, how many (None is all).

    Only turns of a span of time when one is given, and only some owners when they are.
    """

    space_id: int
    owner_kinds: Sequence[str]
    vector: Sequence[float]
    limit: int | None
    span: tuple[datetime, datetime] | None = None
    among: Sequence[UUID] | None = None


def read_nearest(
    connection: Connection, key: dict[str, Any], near: Near, *, approximate: bool = False, of: Sequence[str] = ()
) -> bytes:
    """Return records (NEAR_LAYOUT) of what is nearest in the scope that `key` binds, best first; `of` some kinds only.

    `approximate` walks the space's HNSW index; when that ends before `limit` is reached, the scan is made exact.
    """
    starts_at, ends_at = near.span or (None, None)
    values = {
        **key, "space_id": near.space_id, "known_kinds": list(near.owner_kinds), "vector": vector_text(near.vector),
        "owner_kinds": list(of or near.owner_kinds), "limit": near.limit, "starts_at": starts_at, "ends_at": ends_at,
        "among": list(near.among or ()),
    }  # fmt: skip
    shape = (len(near.vector), near.span is not None, near.among is not None)
    if approximate:
        connection.execute(USE_HNSW)
        found: bytes = connection.execute(_packed_query(*shape, space_id=near.space_id), values).scalar() or b""
        connection.execute(LEAVE_HNSW)
        if near.limit is not None and len(found) >= near.limit * NEAR_BYTES:
            return found
    return connection.execute(_packed_query(*shape), values).scalar() or b""


def remove_index_rows(connection: Connection, tenant_id: UUID, owner_kind: str, owner_ids: Sequence[UUID]) -> None:
    """Take owners out of every search: their vectors in all spaces, their postings and lengths."""
    if not owner_ids:
        return
    values = {"tenant_id": tenant_id, "owner_kind": owner_kind, "owner_ids": sorted(owner_ids)}
    for statement in (REMOVE_VECTORS, REMOVE_POSTINGS, REMOVE_LENGTHS):
        connection.execute(statement, values)


def vector_text(vector: Iterable[float]) -> str:
    """Write a vector the way pgvector reads it."""
    return "[" + ",".join(f"{number:.6g}" for number in vector) + "]"


@cache
def nearest_query(dimensions: int) -> TextClause:
    """Return the exact search statement for vectors of this length."""
    return text(_written(NEAREST, dimensions, 0))


@cache
def _packed_query(dimensions: int, is_within: bool, is_among: bool, *, space_id: int | None = None) -> TextClause:
    written = _written(NEAREST if space_id is None else NEAREST_HNSW, dimensions, space_id or 0)
    for is_asked, condition in ((is_within, WITHIN), (is_among, AMONG)):
        if is_asked:
            written = written.replace("             order by", condition.removeprefix("\n"), 1)
    return text(PACKED.replace("NEAREST", written))


def _written(statement: str, dimensions: int, space_id: int) -> str:
    return statement.replace("DIMENSIONS", str(int(dimensions))).replace("SPACE_ID", str(int(space_id)))
