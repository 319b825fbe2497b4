"""Entities: who and what is named in a scope, one row a name and type, and by which statements."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.ids import derive_id

PUT = text("""
    insert into memoryos.entity (tenant_id, entity_id, scope_id, name, name_norm, type, mentions)
    values (:tenant_id, :entity_id, :scope_id, :name, :name_norm, :type, :mentions)
    on conflict (tenant_id, scope_id, name_norm, type) do update set mentions = entity.mentions + excluded.mentions
""")

LINK = text("""
    insert into memoryos.mention (tenant_id, knowledge_id, entity_id) values (:tenant_id, :knowledge_id, :entity_id)
    on conflict do nothing
""")

Named = tuple[str, str]
"""A name and a type."""


def put_mentions(
    connection: Connection, tenant_id: UUID, scope_id: UUID, *, named: Mapping[UUID, Collection[Named]]
) -> None:
    """Store whom statements name; the same name under another type is another entity. First spelling is kept."""
    spelled: dict[Named, str] = {}
    mentions: Counter[Named] = Counter()
    links: list[dict[str, UUID]] = []
    for knowledge_id, names in named.items():
        keys = {(normalize_name(name), kind): name for name, kind in reversed(list(names)) if normalize_name(name)}
        spelled = {**keys, **spelled}
        mentions.update(list(keys))
        ids = sorted(entity_id(scope_id, *key) for key in keys)
        links += [{"tenant_id": tenant_id, "knowledge_id": knowledge_id, "entity_id": each} for each in ids]
    rows = [
        {
            "tenant_id": tenant_id, "scope_id": scope_id, "entity_id": entity_id(scope_id, *key),
            "name": spelled[key], "name_norm": key[0], "type": key[1], "mentions": mentions[key],
        }
        for key in sorted(mentions)
    ]  # fmt: skip
    if rows:
        connection.execute(PUT, rows)
        connection.execute(LINK, links)


def entity_id(scope_id: UUID, name: str, kind: str) -> UUID:
    """Return the id of an entity of a scope."""
    return derive_id("entity", scope_id, normalize_name(name), kind)


def normalize_name(name: str) -> str:
    """Return a name as compared: forms, case and spaces folded; never shortened or translated."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
