create function memoryos.queue_of(kind text) returns text language sql immutable
return case kind when 'segment' then 'heat' when 'advance' then 'maintenance' when 'erase' then 'maintenance' else kind end;
comment on function memoryos.queue_of is 'The queue that delivers a kind of work.';

create view memory_v1.work with (security_invoker = true) as
select w.tenant_id, s.user_id, s.agent_id, w.work_id, w.kind, memoryos.queue_of(w.kind) as queue, w.subject_key as subject,
       case when w.state <> 'ready' then w.state when w.run_after > clock_timestamp() then 'waiting' else 'ready' end as state,
       case w.state
           when 'done' then 'nothing: it is done'
           when 'cancelled' then 'nothing: it was cancelled'
           when 'dead' then 'a person: ' || coalesce(w.last_error_class, 'failed') || ', given up after '
                            || w.attempts || ' attempts'
           when 'leased' then case when w.lease_until < clock_timestamp()
                then 'another worker: the lease ran out'
                else 'the worker that is doing it: ' || coalesce(w.owner, 'unnamed') end
           else case when w.run_after > clock_timestamp()
                then coalesce('its next try after ' || w.last_error_class, 'its time') || ', in '
                     || ceil(extract(epoch from w.run_after - clock_timestamp())) || ' s'
                when w.enqueued_at is null then 'the relay'
                else 'a worker of the queue ' || memoryos.queue_of(w.kind) end
       end as waits_for,
       w.attempts, w.max_attempts, w.deferrals, w.executions, w.generation, w.run_after, w.enqueued_at, w.lease_until,
       w.last_error_class, w.created_at, w.finished_at, w.scope_id
  from memoryos.work w
  join memoryos.scope s on s.tenant_id = w.tenant_id and s.scope_id = w.scope_id;
comment on view memory_v1.work is 'Everything the pipeline owes or has done: one row a piece of work, in words.';
comment on column memory_v1.work.work_id is 'Id of the work row; the only thing a broker message carries.';
comment on column memory_v1.work.kind is 'What is to be done: advance, summarize, embed, segment, heat, distill, merge, forget or erase.';
comment on column memory_v1.work.queue is 'The Celery queue that delivers it.';
comment on column memory_v1.work.subject is 'What it is to be done to: the id of a conversation, page, scope or statement.';
comment on column memory_v1.work.state is 'ready, waiting (for its time), leased (being done), done, dead (given up) or cancelled.';
comment on column memory_v1.work.waits_for is 'In words: who or what has to move next.';
comment on column memory_v1.work.attempts is 'Tries so far since it was last asked for.';
comment on column memory_v1.work.max_attempts is 'Tries after which it is given up.';
comment on column memory_v1.work.deferrals is 'Times it was put off without burning an attempt, e.g. by a rate limit.';
comment on column memory_v1.work.executions is 'Times it was started, ever.';
comment on column memory_v1.work.generation is 'Times it was asked for.';
comment on column memory_v1.work.run_after is 'Not before this moment.';
comment on column memory_v1.work.enqueued_at is 'When it was last published to the broker.';
comment on column memory_v1.work.lease_until is 'Until when it belongs to the worker that is doing it.';
comment on column memory_v1.work.last_error_class is 'Kind of the last failure: transient, deferred, invalid_output or permanent.';
comment on column memory_v1.work.created_at is 'When it was first asked for.';
comment on column memory_v1.work.finished_at is 'When it was done or given up.';

create view memory_v1.pipeline_lag with (security_invoker = true) as
select w.tenant_id, w.kind, memoryos.queue_of(w.kind) as queue,
       count(*) filter (where w.state = 'ready' and w.run_after <= clock_timestamp()) as ready,
       count(*) filter (where w.state = 'ready' and w.run_after > clock_timestamp()) as waiting,
       count(*) filter (where w.state = 'leased') as leased,
       count(*) filter (where w.state = 'dead') as dead,
       coalesce(extract(epoch from clock_timestamp()
           - min(w.run_after) filter (where w.state = 'ready' and w.run_after <= clock_timestamp())), 0)::double precision
           as oldest_ready_age_seconds
  from memoryos.work w
 group by w.tenant_id, w.kind;
comment on view memory_v1.pipeline_lag is 'How far behind each kind of work is.';
comment on column memory_v1.pipeline_lag.kind is 'Kind of work.';
comment on column memory_v1.pipeline_lag.queue is 'The Celery queue that delivers it.';
comment on column memory_v1.pipeline_lag.ready is 'Due and not taken yet.';
comment on column memory_v1.pipeline_lag.waiting is 'Owed, but not due yet (a later try).';
comment on column memory_v1.pipeline_lag.leased is 'Being done right now.';
comment on column memory_v1.pipeline_lag.dead is 'Given up; needs a person.';
comment on column memory_v1.pipeline_lag.oldest_ready_age_seconds is 'For how long the oldest due piece has been waiting, in seconds.';

create view memory_v1.events with (security_invoker = true) as
select e.tenant_id, s.user_id, s.agent_id, c.external_id as conversation_id, e.position, e.event_id, e.kind, e.subject_id,
       e.related_id, e.seq, e.amount, e.work_id, e.at, e.recorded_at, e.scope_id, e.conversation_id as conversation_key
  from memoryos.event e
  join memoryos.scope s on s.tenant_id = e.tenant_id and s.scope_id = e.scope_id
  left join memoryos.conversation c on c.tenant_id = e.tenant_id and c.conversation_id = e.conversation_id
 where e.position < (select pg_snapshot_xmin(pg_current_snapshot()));
comment on view memory_v1.events is
    'The change feed and audit log: what happened, by id. Page by (position, event_id): nothing below a position you have read is still to come.';
comment on column memory_v1.events.position is 'Transaction of the event; only positions below every running transaction are shown.';
comment on column memory_v1.events.event_id is 'Id of the event, ascending within a position.';
comment on column memory_v1.events.kind is 'What happened, in the past tense: turns_recorded, page_sealed, knowledge_added and so on.';
comment on column memory_v1.events.subject_id is 'What it happened to.';
comment on column memory_v1.events.related_id is 'What else was part of it.';
comment on column memory_v1.events.seq is 'Turn it is about, when it is about one.';
comment on column memory_v1.events.amount is 'A number that belongs to it: a count, a heat, a weight.';
comment on column memory_v1.events.work_id is 'The work it was part of.';
comment on column memory_v1.events.at is 'When, in recorded time (can be frozen by the owner).';
comment on column memory_v1.events.recorded_at is 'When, by the wall clock.';
