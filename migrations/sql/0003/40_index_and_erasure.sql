-- An index row without its owner, or of an owner that must not be recalled, brings back what is gone.
create view memoryos.violation_i12_index with (security_invoker = true) as
with indexed as (
    select tenant_id, owner_kind, owner_id from memoryos.embedding
    union
    select tenant_id, owner_kind, owner_id from memoryos.posting_length
    union
    select tenant_id, owner_kind, owner_id from memoryos.posting
)
select i.tenant_id, i.owner_id::text as subject,
       format('The %s %s is in the search index but %s; delete its index rows.', i.owner_kind, i.owner_id,
              case i.owner_kind when 'page' then 'archived or gone' when 'knowledge' then 'not active or gone'
                                else 'gone' end) as sentence
  from indexed i
 where case i.owner_kind
           when 'turn' then not exists (select from memoryos.turn t
                                         where t.tenant_id = i.tenant_id and t.turn_id = i.owner_id)
           when 'page' then not exists (select from memoryos.page p
                                         where p.tenant_id = i.tenant_id and p.page_id = i.owner_id and p.tier <> 'archived')
           when 'segment' then not exists (select from memoryos.segment g
                                            where g.tenant_id = i.tenant_id and g.segment_id = i.owner_id)
           when 'knowledge' then not exists (select from memoryos.knowledge k
                                              where k.tenant_id = i.tenant_id and k.knowledge_id = i.owner_id
                                                and k.status <> 'forgotten')
           else true
       end;
comment on view memoryos.violation_i12_index is 'I12: what is forgotten, archived or gone is in no index.';

create view memoryos.violation_i12_erased with (security_invoker = true) as
select s.tenant_id, s.scope_id::text as subject,
       format('The memory %s belongs to a user who was erased; erase the user again.', s.scope_id) as sentence
  from memoryos.scope s
  join memoryos.deletion_ledger d on d.tenant_id = s.tenant_id
   and d.subject_hash = sha256(convert_to(s.tenant_id || '|' || s.user_id, 'UTF8'));
comment on view memoryos.violation_i12_erased is 'I12: of an erased user nothing is left.';

create view memoryos.violation_i15_forgotten with (security_invoker = true) as
select k.tenant_id, k.knowledge_id::text as subject,
       format('Knowledge %s was forgotten although it is pinned; restore it.', k.knowledge_id) as sentence
  from memoryos.knowledge k where k.status = 'forgotten' and k.pinned_at is not null
union all
select k.tenant_id, k.knowledge_id::text,
       format('Knowledge %s is forgotten but has no date to be purged at; restore it or give it one.', k.knowledge_id)
  from memoryos.knowledge k where k.status = 'forgotten' and k.purge_at is null;
comment on view memoryos.violation_i15_forgotten is 'I15: forgetting takes only what may be forgotten, and says until when it can be restored.';
