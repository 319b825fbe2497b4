"""Relations between entities, valid as long as the statement they stand on is."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.relations import Triple
from memoryos_pipeline.store.entities import entity_id, normalize_name

PUT = text("""
    insert into memoryos.relation (tenant_id, relation_id, scope_id, source_id, name, target_id, knowledge_id,
                                   valid_from, valid_to)
    values (:tenant_id, :relation_id, :scope_id, :source_id, :name, :target_id, :knowledge_id, :valid_from, :valid_to)
    on conflict do nothing
""")
# What a statement says is related holds exactly as long as the statement does.
FOLLOW = text("""
    update memoryos.relation r
       set valid_from = k.valid_from,
           valid_to = case when k.status = 'active' then null else coalesce(k.valid_to, r.valid_to) end
      from memoryos.knowledge k
     where r.tenant_id = :tenant_id and k.tenant_id = :tenant_id and k.knowledge_id = r.knowledge_id
       and r.knowledge_id = any(cast(:ids as uuid[]))
""")


def put_relations(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *,
    stated: Mapping[UUID, tuple[Sequence[Triple], datetime, datetime | None]],
) -> None:  # fmt: skip
    """Store the triples of statements (id to triples, since when, until when); the entities at their ends are there."""
    rows = [
        {**_row(scope_id, knowledge_id, triple), "tenant_id": tenant_id, "valid_from": since, "valid_to": until}
        for knowledge_id, (found, since, until) in stated.items()
        for triple in found
        if normalize_name(triple.source) and normalize_name(triple.target)
    ]
    if rows:
        connection.execute(PUT, rows)


def follow_knowledge(connection: Connection, tenant_id: UUID, ids: Iterable[UUID]) -> None:
    """Let the relations of these statements begin and end with them."""
    connection.execute(FOLLOW, {"tenant_id": tenant_id, "ids": list(ids)})


def _row(scope_id: UUID, knowledge_id: UUID, triple: Triple) -> dict[str, Any]:
    source = entity_id(scope_id, triple.source, triple.source_type)
    target = entity_id(scope_id, triple.target, triple.target_type)
    return {
        "relation_id": derive_id("relation", knowledge_id, source, triple.name, target),
        "scope_id": scope_id, "knowledge_id": knowledge_id, "source_id": source, "target_id": target,
        "name": triple.name,
    }  # fmt: skip
