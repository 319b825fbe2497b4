-- What may be recalled, and the text its index rows are made from. A turn has left recall when it is marked so, or
-- when its page is archived and everything known from it is forgotten.
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
  from memoryos.turn t
  cross join lateral (
       select before.page_id, before.last_seq, before.tier from memoryos.page before
        where before.tenant_id = t.tenant_id and before.conversation_id = t.conversation_id and before.first_seq <= t.seq
        order by before.first_seq desc limit 1) p
  left join memoryos.work w on w.tenant_id = t.tenant_id and w.kind = 'embed' and w.subject_key = 'turns:' || p.page_id
  left join (select s.tenant_id, s.conversation_id, s.seq, bool_or(k.status <> 'forgotten') as is_known
               from memoryos.knowledge_source s
               join memoryos.knowledge k on k.tenant_id = s.tenant_id and k.knowledge_id = s.knowledge_id
              group by s.tenant_id, s.conversation_id, s.seq) cited
    on cited.tenant_id = t.tenant_id and cited.conversation_id = t.conversation_id and cited.seq = t.seq
 where t.kind = 'normal' and p.last_seq >= t.seq and (p.tier <> 'archived' or coalesce(cited.is_known, true))
   and not exists (select from memoryos.turn_left gone
                    where gone.tenant_id = t.tenant_id and gone.conversation_id = t.conversation_id and gone.seq = t.seq);
comment on view memoryos.recallable is
    'Every text that may be recalled; is_due says that indexing it has been done, so that its index rows must be there.';

create view memoryos.violation_i5_index with (security_invoker = true) as
select r.tenant_id, r.owner_id::text as subject,
       format('The %s %s has no vector of the text it has now, although indexing it is done; owe the embed work %s.',
              r.owner_kind, r.owner_id, r.subject_key) as sentence
  from memoryos.recallable r
 where r.is_due and r.content ~ '[^[:space:]]'
   and not exists (select from memoryos.embedding e
                    where e.tenant_id = r.tenant_id and e.space_id in (select space_id from memoryos.vector_space)
                      and e.owner_kind = r.owner_kind and e.owner_id = r.owner_id
                      and e.input_sha256 = sha256(convert_to(r.content, 'UTF8')));
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
