alter table memoryos.work
    add column deferred_since timestamptz,
    add column claimed_at     timestamptz,
    add column task_id        text,
    add column last_error     text;
comment on column memoryos.work.deferred_since is 'Since when it has been put off without a try that counted; null when the last try counted.';
comment on column memoryos.work.task_id is 'Celery id of the message by which it was last taken.';

create index work_dead on memoryos.work (tenant_id, kind) where state = 'dead';

alter table memoryos.heartbeat add column queues text[] not null default '{}';
comment on column memoryos.heartbeat.queues is 'What a worker takes messages from; empty for other processes.';

create or replace function memoryos.queue_of(kind text) returns text language sql immutable
return case kind when 'segment' then 'heat' when 'advance' then 'maintenance' when 'erase' then 'maintenance'
                 when 'merge_page' then 'merge' else kind end;

-- Done rows stay for ever, so what is open must be found without them: each state by the index of that state alone.
create or replace view memory_v1.pipeline_lag with (security_invoker = true) as
select o.tenant_id, o.kind, memoryos.queue_of(o.kind) as queue,
       count(*) filter (where o.state = 'ready' and o.run_after <= clock_timestamp()) as ready,
       count(*) filter (where o.state = 'ready' and o.run_after > clock_timestamp()) as waiting,
       count(*) filter (where o.state = 'leased') as leased,
       count(*) filter (where o.state = 'dead') as dead,
       coalesce(extract(epoch from clock_timestamp()
           - min(o.run_after) filter (where o.state = 'ready' and o.run_after <= clock_timestamp())), 0)::double precision
           as oldest_ready_age_seconds
  from (select tenant_id, kind, state, run_after from memoryos.work where state = 'ready'
        union all
        select tenant_id, kind, state, run_after from memoryos.work where state = 'leased' and lease_until is not null
        union all
        select tenant_id, kind, state, run_after from memoryos.work where state = 'dead') o
 group by o.tenant_id, o.kind;
comment on view memory_v1.pipeline_lag is 'How far behind each kind of work is; a kind of which nothing is open is not listed.';
comment on column memory_v1.work.kind is
    'What is to be done: advance, summarize, embed, segment, heat, distill, merge, merge_page, forget or erase.';
