-- Row level security on every tenant table, from the first migration on: enabled for others, forced for the owner.
do $$
declare table_name text;
begin
    for table_name in
        select c.relname from pg_catalog.pg_class c
        join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
        where c.relnamespace = 'memoryos'::regnamespace and c.relkind = 'r'
    loop
        execute format('alter table memoryos.%I enable row level security', table_name);
        execute format('alter table memoryos.%I force row level security', table_name);
        execute format(
            'create policy own_tenant on memoryos.%I using (tenant_id = (select memoryos.current_tenant())) '
            'with check (tenant_id = (select memoryos.current_tenant()))', table_name);
    end loop;
end $$;

-- A key row is visible to whoever can name its hash: authentication happens before a tenant is known.
create policy known_key on memoryos.api_key for select
    using (key_sha256 = decode(nullif(current_setting('app.key_sha256', true), ''), 'hex'));

grant usage on schema memoryos to memoryos_app, memoryos_ledger;
grant execute on all functions in schema memoryos to memoryos_app, memoryos_ledger;
grant select on memoryos.clock to memoryos_app, memoryos_ledger;
grant select, insert, update, delete on all tables in schema memoryos to memoryos_app;
revoke insert, update, delete on memoryos.clock from memoryos_app;
revoke insert, update, delete on memoryos.tenant, memoryos.api_key, memoryos.reader_grant from memoryos_app;
revoke update, delete on memoryos.event from memoryos_app;
grant delete on memoryos.event to memoryos_app; -- erasure of a user takes the events with the scope

-- The ledger role moves work across tenants and sees when something is due, never what it says.
grant select, insert, update on memoryos.work to memoryos_ledger;
grant select, insert, update on memoryos.dead_letter, memoryos.periodic_run, memoryos.heartbeat to memoryos_ledger;
grant delete on memoryos.periodic_run, memoryos.heartbeat to memoryos_ledger;
grant select (tenant_id, on_hold) on memoryos.tenant to memoryos_ledger;
grant select (tenant_id, scope_id) on memoryos.scope to memoryos_ledger;
grant select (tenant_id, scope_id, conversation_id, last_activity_at, next_seq, sealed_through, closed_at)
    on memoryos.conversation to memoryos_ledger;
grant select (tenant_id, scope_id, page_id, cools_at) on memoryos.page to memoryos_ledger;
grant select (tenant_id, scope_id, knowledge_id, forget_at, purge_at, pinned_at, status) on memoryos.knowledge to memoryos_ledger;
grant select (tenant_id, scope_id, applied_at) on memoryos.access_event to memoryos_ledger;
do $$
declare table_name text;
begin
    foreach table_name in array array['work', 'dead_letter', 'tenant', 'scope', 'conversation', 'page', 'knowledge', 'access_event']
    loop
        execute format('create policy every_tenant on memoryos.%I to memoryos_ledger using (true) with check (true)', table_name);
    end loop;
end $$;
grant select on public.schema_version to memoryos_app, memoryos_ledger;
