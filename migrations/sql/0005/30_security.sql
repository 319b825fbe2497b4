do $$
declare table_name text;
begin
    foreach table_name in array array['rollup', 'knowledge_past']
    loop
        execute format('alter table memoryos.%I enable row level security', table_name);
        execute format('alter table memoryos.%I force row level security', table_name);
        execute format(
            'create policy own_tenant on memoryos.%I using (tenant_id = (select memoryos.current_tenant())) '
            'with check (tenant_id = (select memoryos.current_tenant()))', table_name);
        execute format('grant select, insert, update, delete on memoryos.%I to memoryos_app', table_name);
    end loop;
end $$;
grant execute on all functions in schema memoryos to memoryos_app, memoryos_ledger, memoryos_reader;
