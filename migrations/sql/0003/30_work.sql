create view memoryos.violation_i7_owed with (security_invoker = true) as
select p.tenant_id, p.page_id::text as subject,
       format('Page %s was sealed but no %s work %s is on the ledger; owe it again.', p.page_id, due.kind, due.subject_key) as sentence
  from memoryos.page p
  cross join lateral (values
       ('summarize', p.page_id::text, true),
       ('embed', 'turns:' || p.page_id, true),
       ('embed', 'summary:' || p.page_id, p.summary is not null),
       ('distill', p.page_id::text, p.extract_ordinal is not null)) due(kind, subject_key, expected)
 where due.expected
   and not exists (select from memoryos.work w
                    where w.tenant_id = p.tenant_id and w.kind = due.kind and w.subject_key = due.subject_key)
union all
select s.tenant_id, s.scope_id::text,
       format('The memory of %s with %s has distilled pages after ordinal %s that no merge work will take up; owe it.',
              s.user_id, s.agent_id, s.merged_ordinal)
  from memoryos.scope s
 where exists (select from memoryos.page p
                where p.tenant_id = s.tenant_id and p.scope_id = s.scope_id
                  and p.extract_ordinal = s.merged_ordinal + 1 and p.extracted_at is not null)
   and not exists (select from memoryos.work w
                    where w.tenant_id = s.tenant_id and w.kind = 'merge' and w.subject_key = s.scope_id::text
                      and w.state <> 'done');
comment on view memoryos.violation_i7_owed is 'I7: whatever has to be done next for a page or a memory is on the ledger.';

create view memoryos.violation_i7_effect with (security_invoker = true) as
select p.tenant_id, p.page_id::text as subject,
       format('The %s work %s of page %s is done but %s; owe it again.', w.kind, w.subject_key, p.page_id, told.missing) as sentence
  from memoryos.page p
  cross join lateral (values
       ('summarize', p.page_id::text, p.summary is null, 'there is no summary'),
       ('embed', 'turns:' || p.page_id, p.indexed_at is null, 'its turns are not indexed'),
       ('distill', p.page_id::text, p.extracted_at is null, 'nothing was distilled, not even nothing')
       ) told(kind, subject_key, is_missing, missing)
  join memoryos.work w on w.tenant_id = p.tenant_id and w.kind = told.kind and w.subject_key = told.subject_key
 where told.is_missing and w.state = 'done';
comment on view memoryos.violation_i7_effect is 'I7: work that is done has left its effect.';

create function memoryos.rest_seconds() returns double precision language sql stable
return coalesce(nullif(current_setting('app.rest_seconds', true), '')::double precision, 300);
comment on function memoryos.rest_seconds() is
    'How long due work may wait before I8 counts it, in seconds; set app.rest_seconds to 0 to check a pipeline at rest.';

create view memoryos.violation_i8_rest with (security_invoker = true) as
select w.tenant_id, w.work_id::text as subject,
       case w.state
           when 'leased' then format('The %s work %s is still leased by %s; a lease that ran out is taken up when a relay and '
                                     'a worker of the queue run.', w.kind, w.subject_key, coalesce(w.owner, 'nobody'))
           else format('The %s work %s has been due for %s s; start a relay and a worker of the queue.', w.kind,
                       w.subject_key, floor(extract(epoch from clock_timestamp() - w.run_after)))
       end as sentence
  from memoryos.work w
 where (w.state = 'leased' and (memoryos.rest_seconds() = 0
                                or w.lease_until < clock_timestamp() - memoryos.rest_seconds() * interval '1 second'))
    or (w.state = 'ready' and w.run_after <= clock_timestamp() - memoryos.rest_seconds() * interval '1 second');
comment on view memoryos.violation_i8_rest is 'I8: at rest nothing is leased and nothing is past due.';

create view memoryos.violation_i9_dead with (security_invoker = true) as
select w.tenant_id, w.work_id::text as subject,
       format('The %s work %s was tried %s times of at most %s; bury it or raise its limit.',
              w.kind, w.subject_key, w.attempts, w.max_attempts) as sentence
  from memoryos.work w where w.attempts > w.max_attempts
union all
select w.tenant_id, w.work_id::text,
       format('The %s work %s is dead without a reason; replay it and read what it says.', w.kind, w.subject_key)
  from memoryos.work w
 where w.state = 'dead'
   and not exists (select from memoryos.dead_letter d where d.tenant_id = w.tenant_id and d.work_id = w.work_id);
comment on view memoryos.violation_i9_dead is 'I9: attempts stay within their limit, and what was given up says why.';
