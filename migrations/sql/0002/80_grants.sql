grant usage on schema memory_v1 to memoryos_app, memoryos_reader;
grant select on all tables in schema memory_v1 to memoryos_app, memoryos_reader;
grant usage on schema memoryos to memoryos_reader;
grant execute on all functions in schema memoryos to memoryos_app, memoryos_ledger, memoryos_reader;
grant select on memoryos.clock to memoryos_reader;
grant select (tenant_id, login_role) on memoryos.reader_grant to memoryos_reader;

-- The views run with the reader's own rights, so a reader needs exactly the columns the views were built from.
do $$
declare
    needed record;
begin
    for needed in
        select used.relname, string_agg(distinct quote_ident(a.attname), ', ') as columns
          from pg_catalog.pg_depend d
          join pg_catalog.pg_rewrite r on r.oid = d.objid
          join pg_catalog.pg_class view on view.oid = r.ev_class and view.relnamespace = 'memory_v1'::regnamespace
          join pg_catalog.pg_class used on used.oid = d.refobjid and used.relnamespace = 'memoryos'::regnamespace
          join pg_catalog.pg_attribute a on a.attrelid = used.oid and a.attnum = d.refobjsubid
         where d.classid = 'pg_catalog.pg_rewrite'::regclass and d.refclassid = 'pg_catalog.pg_class'::regclass
           and d.refobjsubid > 0
         group by used.relname
    loop
        execute format('grant select (%s) on memoryos.%I to memoryos_reader', needed.columns, needed.relname);
    end loop;
end $$;
