-- What may be recalled, and the text its index rows are made from. A turn has left recall when its page is archived
-- and everything known from it is forgotten.
create view memoryos.recallable with (security_invoker = true) as
select p.tenant_id, 'page' as owner_kind, p.page_id as owner_id, p.summary as content,
       'summary:' || p.page_id as subject_key, w.state = 'done' as is_due
  from memoryos.page p
  left join memoryos.work w on w.tenant_id = p.tenant_id and w.kind = 'embed' and w.subject_key = 'summary:' || p.page_id
 where p.tier = 'warm' and p.summary is not null
union all
select k.tenant_id, 'knowledge', k.knowledge_id, k.content, 'knowledge:' || k.knowledge_id, coalesce(w.state = 'done', true)
  from memoryos.knowledge k
  left join memoryos.work w on w.tenant_id = k.tenant_id and w.kind = 'embed' and w.subject_key = 'knowledge:' || k.knowledge_id
 where k.status = 'active'
union all
select t.tenant_id, 'turn', t.turn_id, t.content, 'turns:' || p.page_id, w.state = 'done'
  from memoryos.page p
  join memoryos.turn t on t.tenant_id = p.tenant_id and t.conversation_id = p.conversation_id
                      and t.seq between p.first_seq and p.last_seq
  left join memoryos.work w on w.tenant_id = p.tenant_id and w.kind = 'embed' and w.subject_key = 'turns:' || p.page_id
 where t.kind = 'normal'
   and not (p.tier = 'archived'
            and exists (select from memoryos.knowledge_source s
                         where s.tenant_id = t.tenant_id and s.conversation_id = t.conversation_id and s.seq = t.seq)
            and not exists (select from memoryos.knowledge_source s
                              join memoryos.knowledge k on k.tenant_id = s.tenant_id and k.knowledge_id = s.knowledge_id
                             where s.tenant_id = t.tenant_id and s.conversation_id = t.conversation_id and s.seq = t.seq
                               and k.status <> 'forgotten'));
comment on view memoryos.recallable is
    'Every text that may be recalled; is_due says that indexing it has been done, so that its index rows must be there.';

create view memoryos.violation_i5_index with (security_invoker = true) as
select r.tenant_id, r.owner_id::text as subject,
       format('The %s %s %s; owe the embed work %s.', r.owner_kind, r.owner_id,
              case when e.owner_id is null then 'has no vector although indexing it is done'
                   else 'has a vector of another text than it has now' end, r.subject_key) as sentence
  from memoryos.recallable r
  left join memoryos.embedding e
    on e.tenant_id = r.tenant_id and e.owner_kind = r.owner_kind and e.owner_id = r.owner_id
 where r.is_due and r.content ~ '[^[:space:]]'
   and e.input_sha256 is distinct from sha256(convert_to(r.content, 'UTF8'));
comment on view memoryos.violation_i5_index is 'I5: what may be recalled has a vector, made from the text it has now.';

-- An index row of something that must not be recalled brings back what is gone.
create view memoryos.violation_i12_index with (security_invoker = true) as
with indexed as (
    select tenant_id, owner_kind, owner_id from memoryos.embedding
    union
    select tenant_id, owner_kind, owner_id from memoryos.posting_length
    union
    select tenant_id, owner_kind, owner_id from memoryos.posting
)
select i.tenant_id, i.owner_id::text as subject,
       format('The %s %s is in the search index but is %s; delete its index rows.', i.owner_kind, i.owner_id,
              case i.owner_kind when 'page' then 'archived or gone' when 'knowledge' then 'not active or gone'
                                when 'turn' then 'out of recall or gone' else 'gone' end) as sentence
  from indexed i
 where not exists (select from memoryos.recallable r
                    where r.tenant_id = i.tenant_id and r.owner_kind = i.owner_kind and r.owner_id = i.owner_id)
   and not exists (select from memoryos.segment g
                    where g.tenant_id = i.tenant_id and g.segment_id = i.owner_id and i.owner_kind = 'segment');
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
  from memoryos.knowledge k
 where k.status = 'forgotten' and k.pinned_at is not null and k.superseded_by is null
union all
select k.tenant_id, k.knowledge_id::text,
       format('Knowledge %s is forgotten but has no date to be purged at; restore it or give it one.', k.knowledge_id)
  from memoryos.knowledge k where k.status = 'forgotten' and k.purge_at is null;
comment on view memoryos.violation_i15_forgotten is 'I15: forgetting takes only what may be forgotten, and says until when it can be restored.';
