create view memoryos.violation_i6_provenance with (security_invoker = true) as
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
union all
select p.tenant_id, p.page_id::text,
       format('Page %s was distilled but says neither how much it gave nor that it gave nothing; distil it again.', p.page_id)
  from memoryos.page p
 where p.extracted_at is not null and p.knowledge_count is null;
comment on view memoryos.violation_i6_provenance is
    'I6: every statement cites a turn, and every distilled page is cited or gave an explicit nothing.';

create view memoryos.violation_i6_lineage with (security_invoker = true) as
with recursive settled as (
    -- Walk back from where a chain ends; what is never reached goes round in a circle.
    select k.tenant_id, k.knowledge_id from memoryos.knowledge k
     where k.superseded_by is null
        or not exists (select from memoryos.knowledge n
                        where n.tenant_id = k.tenant_id and n.knowledge_id = k.superseded_by)
    union
    select k.tenant_id, k.knowledge_id from settled n
      join memoryos.knowledge k on k.tenant_id = n.tenant_id and k.superseded_by = n.knowledge_id
)
select k.tenant_id, k.knowledge_id::text as subject,
       format('Knowledge %s is superseded by itself, going round; reopen the newest version of the lineage %s.',
              k.knowledge_id, k.lineage_id) as sentence
  from memoryos.knowledge k
 where k.superseded_by is not null
   and not exists (select from settled n where n.tenant_id = k.tenant_id and n.knowledge_id = k.knowledge_id)
union all
select k.tenant_id, k.lineage_id::text,
       format('Lineage %s has %s active versions; close all but the newest.', k.lineage_id, count(*))
  from memoryos.knowledge k where k.status = 'active'
 group by k.tenant_id, k.lineage_id having count(*) > 1
union all
select k.tenant_id, k.knowledge_id::text,
       format('Knowledge %s is active although %s replaced it; mark it superseded.', k.knowledge_id, k.superseded_by)
  from memoryos.knowledge k where k.status = 'active' and k.superseded_by is not null;
comment on view memoryos.violation_i6_lineage is 'I6: chains of versions do not go round, and a lineage has at most one active head.';
