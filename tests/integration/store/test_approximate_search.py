"""The approximate index finds what brute force finds, under every filter, and never less than there is."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.recall.columns import ids_of, unpack, uuid_at
from memoryos_pipeline.store.approximate import build_index
from memoryos_pipeline.store.tenants import create_tenant
from memoryos_pipeline.store.vectors import NEAR_LAYOUT, Near, _packed_query, read_nearest, vector_text
from tests.conftest import Stack

DIMENSIONS, TOPICS, TURNS, K = 24, 60, 1_200, 10
START = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = (
    "insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id) values (:tenant, :scope, :user, 'companion')"
)
SPACE = """
    insert into memoryos.vector_space (model, revision, dimensions, token_cap) values ('m', 'r', :dimensions, 8)
    returning space_id
"""
VECTORS = """
    insert into memoryos.embedding (tenant_id, space_id, owner_kind, owner_id, scope_id, vec, input_sha256, tokens)
    select :tenant, :space, 'turn', owner, :scope, cast(vec as public.halfvec), '', 1
      from unnest(cast(:owners as uuid[]), cast(:vectors as text[])) given(owner, vec)
"""
LENGTHS = """
    insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms, at)
    select :tenant, :scope, 'turn', owner, 1, cast(:start as timestamptz) + n * interval '1 hour'
      from unnest(cast(:owners as uuid[])) with ordinality given(owner, n)
"""

Matrix = NDArray[np.float32]


@dataclass
class Filled:
    """Memories of two users in each of two tenants, all about the same topics; one of them is asked."""

    stack: Stack
    tenant: UUID
    scope: UUID
    space: int
    owners: list[UUID]
    vectors: Matrix

    def truth(self, query: Matrix, matching: NDArray[np.bool_]) -> set[UUID]:
        """Return the nearest of those that match, by brute force."""
        cosines = np.where(matching, self.vectors.astype(np.float16).astype(np.float32) @ query, -2)
        return {self.owners[place] for place in np.argsort(-cosines)[: min(K, matching.sum())]}

    def found(self, near: Near) -> list[UUID]:
        """Return what the approximate index finds."""
        key = {"tenant_id": self.tenant, "scope_id": self.scope}
        with self.stack.app.snapshot(self.tenant) as connection:
            ids = ids_of(unpack(read_nearest(connection, key, near, approximate=True), NEAR_LAYOUT))
        return [uuid_at(ids, place) for place in range(len(ids))]


def _unit(rows: Matrix) -> Matrix:
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _fill(connection: Connection, tenant: UUID, user: str, *, space: int, topics: Matrix, seed: int) -> Filled:
    chance = np.random.default_rng(seed)
    said = topics[chance.integers(0, TOPICS, TURNS)] + chance.standard_normal((TURNS, DIMENSIONS)) * 0.25
    filled = Filled(None, tenant, mint_id(), space, [mint_id() for _ in range(TURNS)], _unit(said))  # type: ignore[arg-type]
    values = {
        "tenant": tenant, "scope": filled.scope, "user": user, "space": space, "owners": filled.owners, "start": START,
        "vectors": [vector_text(vector) for vector in filled.vectors],
    }  # fmt: skip
    for statement in (SCOPE, VECTORS, LENGTHS):
        connection.execute(text(statement), values)
    return filled


@pytest.fixture
def filled(stack: Stack) -> Filled:
    """The memory that is asked, with an approximate index over everybody's."""
    other = mint_id()
    create_tenant(stack.owner, other, "other")
    topics = np.random.default_rng(1).standard_normal((TOPICS, DIMENSIONS)).astype(np.float32)
    memories = []
    for number, (tenant, user) in enumerate((each, user) for each in (stack.tenant_id, other) for user in ("a", "b")):
        with stack.app.transaction(tenant) as connection:
            if not number:
                space = connection.execute(text(SPACE), {"dimensions": DIMENSIONS}).scalar_one()
            memories.append(_fill(connection, tenant, user, space=space, topics=topics, seed=number))
    build_index(stack.owner, space, dimensions=DIMENSIONS)
    with stack.owner.across_tenants() as connection:
        connection.execute(text("analyze memoryos.embedding"))
    return replace(memories[1], stack=stack)


class TestNearest:
    def test_it_finds_what_brute_force_finds(self, filled: Filled) -> None:
        """Of the ten nearest at least 98 in a hundred are found, of one user of one tenant, in a span, of some."""
        queries = _unit(filled.vectors[::40] + 0.1)
        span = (START + timedelta(hours=300), START + timedelta(hours=700))
        inside = np.array([300 <= number + 1 < 700 for number in range(TURNS)])
        every = np.ones(TURNS, dtype=bool)
        some = np.random.default_rng(5).random(TURNS) < 0.3
        of_some = [owner for owner, is_one in zip(filled.owners, some, strict=True) if is_one]
        for matching, within, among in ((every, None, None), (inside, span, None), (some, None, of_some)):
            hits = wanted = 0
            for query in queries:
                truth = filled.truth(query, matching)
                found = filled.found(Near(filled.space, ["turn"], query.tolist(), K, span=within, among=among))
                hits, wanted = hits + len(truth & set(found)), wanted + len(truth)
                assert len(found) == K
            assert hits >= 0.98 * wanted

    def test_it_never_returns_less_than_there_is(self, filled: Filled) -> None:
        """Five turns of one span, and a limit above all there are: every one is returned, nobody else's."""
        query = filled.vectors[0].tolist()
        span = (START + timedelta(hours=1), START + timedelta(hours=6))

        assert set(filled.found(Near(filled.space, ["turn"], query, K, span=span))) == set(filled.owners[:5])
        everything = filled.found(Near(filled.space, ["turn", "page"], query, 5_000))
        assert set(everything) == set(filled.owners)
        assert len(everything) == TURNS

    def test_it_is_the_index_that_finds(self, filled: Filled) -> None:
        """The plan under row level security walks the approximate index of the space."""
        key = {
            "tenant_id": filled.tenant,
            "scope_id": filled.scope,
            "owner_kinds": ["turn"],
            "known_kinds": ["turn"],
            "limit": K,
        }
        values = {**key, "vector": vector_text(filled.vectors[0].tolist())}
        with filled.stack.app.snapshot(filled.tenant) as connection:
            connection.execute(text("select set_config('enable_sort', 'off', true)"))
            statement = _packed_query(DIMENSIONS, False, False, space_id=filled.space)
            plan = connection.execute(text(f"explain {statement.text}"), values).scalars().all()

        assert any(f"embedding_hnsw_{filled.space}" in line for line in plan)
