"""What the code believes about the tables is what the migrations make."""

from sqlalchemy import text
from sqlalchemy.dialects import postgresql

from memoryos_pipeline.store.tables import METADATA
from tests.conftest import Stack

REFLECT = text("""
    select c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), not a.attnotnull,
           coalesce(array_position(cast(i.indkey as smallint[]), a.attnum), -1)
      from pg_catalog.pg_class c
      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisprimary
     where c.relnamespace = cast('memoryos' as regnamespace) and c.relkind = 'r'
""")
SPELLED = {"TIMESTAMP WITH TIME ZONE": "timestamp with time zone", "NUMERIC(12, 6)": "numeric(12,6)"}


def _described() -> set[tuple[object, ...]]:
    rows = set()
    for table in METADATA.tables.values():
        keys = [column.name for column in table.primary_key.columns]
        for column in table.columns:
            spelled = column.type.compile(dialect=postgresql.dialect())
            place = keys.index(column.name) if column.name in keys else -1
            rows.add((table.name, column.name, SPELLED.get(spelled, spelled.lower()), bool(column.nullable), place))
    return rows


def test_tables_are_what_the_migrations_make(stack: Stack) -> None:
    """Tables, columns, types, nullability and the order of primary keys are the same on both sides."""
    with stack.owner.across_tenants() as connection:
        migrated = {tuple(row) for row in connection.execute(REFLECT)}

    assert _described() ^ migrated == set()
