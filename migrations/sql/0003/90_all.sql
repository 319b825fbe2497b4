create view memoryos.violations with (security_invoker = true) as
select 'I2' as invariant, tenant_id, subject, sentence from memoryos.violation_i2_gap
union all select 'I3', tenant_id, subject, sentence from memoryos.violation_i3_place
union all select 'I4', tenant_id, subject, sentence from memoryos.violation_i4_cover
union all select 'I5', tenant_id, subject, sentence from memoryos.violation_i5_index
union all select 'I6', tenant_id, subject, sentence from memoryos.violation_i6_provenance
union all select 'I6', tenant_id, subject, sentence from memoryos.violation_i6_lineage
union all select 'I7', tenant_id, subject, sentence from memoryos.violation_i7_owed
union all select 'I7', tenant_id, subject, sentence from memoryos.violation_i7_effect
union all select 'I8', tenant_id, subject, sentence from memoryos.violation_i8_rest
union all select 'I9', tenant_id, subject, sentence from memoryos.violation_i9_dead
union all select 'I12', tenant_id, subject, sentence from memoryos.violation_i12_index
union all select 'I12', tenant_id, subject, sentence from memoryos.violation_i12_erased
union all select 'I15', tenant_id, subject, sentence from memoryos.violation_i15_forgotten;
comment on view memoryos.violations is 'Every broken invariant: one row a violation, with what is wrong and what repairs it. Empty is good.';

do $$
declare
    view_name text;
begin
    for view_name in select relname from pg_catalog.pg_class
                      where relnamespace = 'memoryos'::regnamespace and relkind = 'v' and (relname like 'violation%' or relname = 'recallable')
    loop
        execute format('grant select on memoryos.%I to memoryos_app', view_name);
    end loop;
end $$;
grant execute on function memoryos.rest_seconds() to memoryos_app;
