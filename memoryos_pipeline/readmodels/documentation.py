"""The page about the read models, written from the comments in the database itself."""

from collections.abc import Sequence

from sqlalchemy import Connection, Row, text

COLUMNS = text("""
    select c.relname as view, pg_catalog.obj_description(c.oid, 'pg_class') as about,
           a.attname as column, pg_catalog.format_type(a.atttypid, a.atttypmod) as type,
           pg_catalog.col_description(c.oid, a.attnum) as meaning
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where n.nspname = 'memory_v1' and c.relkind = 'v'
     order by c.relname, a.attnum
""")

INTRODUCTION = """# Read models: schema `memory_v1`

This page is written from the comments in the database; `\\d+ memory_v1.knowledge` in psql says the same.
The views run with the rights of whoever reads (`security_invoker`) and under row level security: you see one tenant.
Heat and weight are computed as you read, so they are never stale. Columns are only ever added; a change of meaning
would be a new schema beside this one.

## A login for SQL

A person who reads by SQL gets a login of their own, mapped to one tenant by its name; setting `app.tenant` has no
effect for them. As a superuser, then as the owner:

```sql
create role maya_reads login nosuperuser nobypassrls in role memoryos_reader password '...';
alter role maya_reads set default_transaction_read_only = on;
alter role maya_reads set statement_timeout = '30s';
alter role maya_reads set search_path = memory_v1;

begin;  -- as memoryos_owner
select set_config('app.tenant', '<tenant id>', true);
insert into memoryos.reader_grant (tenant_id, login_role) values ('<tenant id>', 'maya_reads');
commit;
```

```sql
select content, weight, source_turn_ids from memory_v1.knowledge where user_id = 'maya' order by weight desc;
select kind, ready, dead, oldest_ready_age_seconds from memory_v1.pipeline_lag;
```

## Decisions and relations

```sql
select decision, old_content, new_content, reason from memory_v1.verdicts
 where user_id = 'maya' and undone_at is null order by decided_at desc;
select source, relation, target from memory_v1.relations where user_id = 'maya' and valid_to is null;
select name, type, mentions from memory_v1.entities where user_id = 'maya' order by mentions desc;
select period, summary from memory_v1.rollups where user_id = 'maya' order by period;
```

`memoryos conflicts undo ID` takes a decision back; its row then says when. A relation begins and ends with the
statement it stands on. Relations are made under the policy `graph = triples`, rollups under `rollups = daily`.

## As of a moment

```sql
select content, weight from memory_v1.knowledge_as_of('2026-03-05T12:00Z') where user_id = 'maya' and status = 'active';
select tier, count(*) from memory_v1.turns_as_of('2026-03-05T12:00Z') group by tier;
```

`turns_as_of`, `pages_as_of` and `knowledge_as_of` take a moment of recorded time and return rows of `turns`, `pages`
and `knowledge_history` as they were then, also what has been superseded or forgotten since. What was purged or erased
is not brought back; the heat a page had is not kept.

## The change feed

Read `memory_v1.events` by `(position, event_id)` and remember the last pair you saw. Only events below every running
transaction are shown, so nothing that commits late is ever skipped.
"""


def render_documentation(connection: Connection) -> str:
    """Return docs/read-models.md as Markdown. Any role that may connect can read the comments."""
    sections: dict[str, list[Row[tuple[str, ...]]]] = {}
    for row in connection.execute(COLUMNS):
        sections.setdefault(row.view, []).append(row)
    return "\n".join([INTRODUCTION, *(_section(view, rows) for view, rows in sections.items())])


def _section(view: str, rows: Sequence[Row[tuple[str, ...]]]) -> str:
    lines = [f"## `{view}`", "", rows[0].about or "", "", "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{row.column}` | {row.type} | {row.meaning or ''} |" for row in rows]
    return "\n".join(lines) + "\n"
