"""Profile rows: one a dimension, changed by deltas, standing on knowledge."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.profile import Trait

LOAD = text("""
    select actor, dimension, level, confidence, knowledge_ids, version from memoryos.trait
     where tenant_id = :tenant_id and scope_id = :scope_id and actor = any(cast(:actors as text[]))
       for no key update
""")
PUT = text("""
    insert into memoryos.trait (tenant_id, scope_id, actor, dimension, level, confidence, knowledge_ids, version)
    values (:tenant_id, :scope_id, :actor, :dimension, :level, :confidence, cast(:knowledge_ids as uuid[]), :version)
    on conflict (tenant_id, scope_id, actor, dimension) do update
       set level = excluded.level, confidence = excluded.confidence, knowledge_ids = excluded.knowledge_ids,
           version = excluded.version, updated_at = memoryos.now()
""")


def load_traits(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, actors: Iterable[str]
) -> dict[tuple[str, str], Trait]:  # fmt: skip
    """Return the traits of these actors, locked, under (actor, dimension)."""
    values = {"tenant_id": tenant_id, "scope_id": scope_id, "actors": sorted(set(actors))}
    traits = [_trait(row) for row in connection.execute(LOAD, values)]
    return {(trait.actor, trait.dimension): trait for trait in traits}


def put_traits(connection: Connection, tenant_id: UUID, scope_id: UUID, traits: Sequence[Trait]) -> None:
    """Store traits as they are after their deltas."""
    rows = [
        {
            "tenant_id": tenant_id, "scope_id": scope_id, "actor": trait.actor, "dimension": trait.dimension,
            "level": trait.level, "confidence": trait.confidence, "knowledge_ids": list(trait.knowledge_ids),
            "version": trait.version,
        }
        for trait in traits
    ]  # fmt: skip
    if rows:
        connection.execute(PUT, rows)


def _trait(row: Sequence[object]) -> Trait:
    actor, dimension, level, confidence, knowledge_ids, version = row
    return Trait(actor, dimension, level, confidence, tuple(knowledge_ids), version)  # type: ignore[arg-type]
