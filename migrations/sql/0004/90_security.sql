do $$
declare table_name text;
begin
    foreach table_name in array array['tally', 'budget', 'reservation'] loop
        execute format('alter table memoryos.%I enable row level security', table_name);
        execute format('alter table memoryos.%I force row level security', table_name);
        execute format(
            'create policy own_tenant on memoryos.%I using (tenant_id = (select memoryos.current_tenant())) '
            'with check (tenant_id = (select memoryos.current_tenant()))', table_name);
    end loop;
    foreach table_name in array array['tally', 'budget', 'reservation', 'event'] loop
        execute format('create policy every_tenant on memoryos.%I to memoryos_ledger using (true) with check (true)', table_name);
    end loop;
end $$;

grant select, insert, update, delete on memoryos.tally, memoryos.budget, memoryos.reservation to memoryos_app;
grant select on memoryos.paused_kind, memoryos.alarm, memoryos.counter, memoryos.doctor_run to memoryos_app;
grant select, insert, update on memoryos.provider_state to memoryos_app;

grant select, insert, update, delete on memoryos.tally, memoryos.paused_kind, memoryos.alarm, memoryos.doctor_run to memoryos_ledger;
grant select, insert, update on memoryos.counter to memoryos_ledger;
grant select on memoryos.budget, memoryos.reservation, memoryos.provider_state to memoryos_ledger;
grant select (tokens_per_day) on memoryos.tenant to memoryos_ledger;
grant delete on memoryos.budget, memoryos.reservation to memoryos_ledger;

-- Retention: the ledger role sees when something happened and may let it go, and still reads nothing that was said.
grant select (tenant_id, retrieval_id, owner_kind, owner_id, cause) on memoryos.access_event to memoryos_ledger;
grant delete on memoryos.access_event to memoryos_ledger;
grant select (tenant_id, event_id, kind, recorded_at) on memoryos.event to memoryos_ledger;
grant delete on memoryos.event to memoryos_ledger;
