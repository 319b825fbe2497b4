-- A page that merging was given up for was passed over, not merged: its dead row says so, and a replay puts it back.
create or replace view memoryos.violation_i6_provenance with (security_invoker = true) as
select k.tenant_id, k.knowledge_id::text as subject,
       format('Knowledge %s cites no turn; distil its pages again or delete it.', k.knowledge_id) as sentence
  from memoryos.knowledge k
 where not exists (select from memoryos.knowledge_source o
                    where o.tenant_id = k.tenant_id and o.knowledge_id = k.knowledge_id)
union all
select p.tenant_id, p.page_id::text,
       format('Page %s gave %s statements and was merged, but nothing cites it and nothing of this memory was purged; '
              'distil it again.', p.page_id, p.knowledge_count)
  from memoryos.page p
  join memoryos.scope s on s.tenant_id = p.tenant_id and s.scope_id = p.scope_id
 where p.extracted_at is not null and p.knowledge_count > 0 and p.extract_ordinal <= s.merged_ordinal
   and not exists (select from memoryos.knowledge_source o where o.tenant_id = p.tenant_id and o.page_id = p.page_id)
   and not exists (select from memoryos.event e where e.tenant_id = p.tenant_id and e.scope_id = p.scope_id
                                                  and e.kind = 'knowledge_purged')
   and not exists (select from memoryos.work w where w.tenant_id = p.tenant_id and w.kind = 'merge_page'
                                                 and w.subject_key = p.page_id::text and w.state <> 'done')
union all
select p.tenant_id, p.page_id::text,
       format('Page %s was distilled but says neither how much it gave nor that it gave nothing; distil it again.', p.page_id)
  from memoryos.page p
 where p.extracted_at is not null and p.knowledge_count is null;

-- What an operator has paused waits on purpose; a pipeline that is said to be drained has none of it.
create or replace view memoryos.violation_i8_rest with (security_invoker = true) as
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
    or (w.state = 'ready' and w.run_after <= clock_timestamp() - memoryos.rest_seconds() * interval '1 second'
        and (memoryos.rest_seconds() = 0
             or not exists (select from memoryos.paused_kind p where p.kind = w.kind)));
