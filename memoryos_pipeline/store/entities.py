"""Entities: who and what is named in a scope, one row a name and type."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Connection, text

from memoryos_pipeline.domain.ids import derive_id

PUT = text("""
    insert into memoryos.entity (tenant_id, entity_id, scope_id, name, name_norm, type, mentions)
    values (:tenant_id, :entity_id, :scope_id, :name, :name_norm, :type, :mentions)
    on conflict (tenant_id, scope_id, name_norm, type) do update set mentions = entity.mentions + excluded.mentions
""")


def count_mentions(connection: Connection, tenant_id: UUID, scope_id: UUID, named: Iterable[tuple[str, str]]) -> None:
    """Count mentions (name, type); the same name under another type is another entity. First spelling is kept."""
    spelled: dict[tuple[str, str], str] = {}
    mentions: Counter[tuple[str, str]] = Counter()
    for name, kind in named:
        key = (normalize_name(name), kind)
        if key[0]:
            spelled.setdefault(key, name)
            mentions[key] += 1
    rows = [
        {
            "tenant_id": tenant_id, "scope_id": scope_id, "entity_id": derive_id("entity", scope_id, *key),
            "name": spelled[key], "name_norm": key[0], "type": key[1], "mentions": mentions[key],
        }
        for key in sorted(mentions)
    ]  # fmt: skip
    if rows:
        connection.execute(PUT, rows)


def normalize_name(name: str) -> str:
    """Return a name as compared: forms, case and spaces folded; never shortened or translated."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
