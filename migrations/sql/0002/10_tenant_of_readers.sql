-- Who is asking: the application names its tenant in a setting; a person with a SQL login cannot, they are mapped by login.
create function memoryos.reader_tenant() returns uuid
language sql stable
return (select g.tenant_id from memoryos.reader_grant g where g.login_role = session_user);
comment on function memoryos.reader_tenant() is 'The tenant a SQL login was granted, or null.';

-- The body is bound when it is created, so no search_path can redirect it, and without SET it can be inlined.
create or replace function memoryos.current_tenant() returns uuid
language sql stable
return case
    when pg_has_role(session_user, 'memoryos_reader', 'member') then memoryos.reader_tenant()
    else nullif(current_setting('app.tenant', true), '')::uuid
end;
comment on function memoryos.current_tenant() is
    'The tenant of this transaction: by login for SQL readers, by the setting app.tenant for everybody else.';

-- A policy for everybody would ask current_tenant(), which asks this table: readers get a policy of their own instead.
drop policy own_tenant on memoryos.reader_grant;
create policy own_tenant on memoryos.reader_grant to current_user, memoryos_app
    using (tenant_id = (select memoryos.current_tenant()))
    with check (tenant_id = (select memoryos.current_tenant()));
create policy own_login on memoryos.reader_grant for select to memoryos_reader using (login_role = session_user);
