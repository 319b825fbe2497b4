"""Approximate indexes over vectors: which spaces would gain by one, building without stopping anybody, and dropping."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.store.database import Database

SPACES = text("""
    select s.space_id, s.model, s.dimensions,
           (select case when i.indisvalid then 'valid' else 'broken' end from pg_index i
             where i.indexrelid = to_regclass('memoryos.embedding_hnsw_' || s.space_id)) as state,
           pg_relation_size(to_regclass('memoryos.embedding_hnsw_' || s.space_id)) as size_bytes
      from memoryos.vector_space s order by s.space_id
""")
COUNT = text("""
    select space_id, sum(vectors) as vectors, max(turns) as largest
      from (select space_id, scope_id, count(*) as vectors, count(*) filter (where owner_kind = 'turn') as turns
              from memoryos.embedding
             where tenant_id = :tenant_id group by space_id, scope_id) memory
     group by space_id
""")
BUILD = """
    create index concurrently if not exists embedding_hnsw_SPACE_ID on memoryos.embedding
     using hnsw ((cast(vec as public.halfvec(DIMENSIONS))) public.halfvec_cosine_ops) where space_id = SPACE_ID
"""
DROP = "drop index concurrently if exists memoryos.embedding_hnsw_SPACE_ID"
PROGRESS = text("""
    select phase, case when blocks_total > 0 then 100 * blocks_done / blocks_total end as percent
      from pg_stat_progress_create_index
     where relid = cast('memoryos.embedding' as regclass) and datname = current_database() limit 1
""")
SET_MEMORY = text("select set_config('maintenance_work_mem', :memory, false)")


@dataclass(frozen=True, slots=True)
class SpaceSize:
    """A vector space: its vectors, the turns of its largest memory, and its approximate index.

    `state` is None without an index, `broken` when building one was interrupted: it is in nobody's way and of no use.
    """

    space_id: int
    model: str
    dimensions: int
    vectors: int
    largest_memory: int
    state: str | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is; `percent` of the table read, None in phases that count nothing."""

    phase: str
    percent: int | None


def list_spaces(owner: Database, tenant_ids: Iterable[UUID]) -> list[SpaceSize]:
    """Return every space; the vectors are counted one tenant after another, because row level security is forced."""
    vectors: dict[int, int] = {}
    largest: dict[int, int] = {}
    for tenant_id in tenant_ids:
        with owner.transaction(tenant_id) as connection:
            for row in connection.execute(COUNT, {"tenant_id": tenant_id}):
                vectors[row.space_id] = vectors.get(row.space_id, 0) + int(row.vectors)
                largest[row.space_id] = max(largest.get(row.space_id, 0), row.largest)
    with owner.across_tenants() as connection:
        found = connection.execute(SPACES).all()
    return [
        SpaceSize(
            row.space_id, row.model, row.dimensions, vectors.get(row.space_id, 0), largest.get(row.space_id, 0),
            row.state, row.size_bytes or 0,
        )
        for row in found
    ]  # fmt: skip


def build_index(owner: Database, space_id: int, *, dimensions: int, memory_mb: int = 64) -> None:
    """Give a space its approximate index while everybody goes on reading and writing; a broken one is replaced.

    Only the owner role may. `memory_mb` is what the graph may take while it is built; beyond, building is slow.
    """
    with owner.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(SET_MEMORY, {"memory": f"{memory_mb}MB"})
        if _state(connection, space_id) == "broken":
            connection.execute(text(_written(DROP, space_id)))
        connection.execute(text(_written(BUILD, space_id).replace("DIMENSIONS", str(int(dimensions)))))
        connection.execute(text("reset maintenance_work_mem"))


def drop_index(owner: Database, space_id: int) -> None:
    """Take the approximate index of a space away; searches are exact from then on."""
    with owner.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(_written(DROP, space_id)))


def read_progress(owner: Database) -> Progress | None:
    """Return how far the index is that is being built in this database, None when none is."""
    with owner.across_tenants() as connection:
        row = connection.execute(PROGRESS).first()
    return Progress(row.phase, row.percent) if row else None


def _state(connection: Connection, space_id: int) -> str | None:
    return next((row.state for row in connection.execute(SPACES) if row.space_id == space_id), None)


def _written(statement: str, space_id: int) -> str:
    return statement.replace("SPACE_ID", str(int(space_id)))
