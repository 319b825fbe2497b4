-- Hot turns are indexed ahead of their page, so that what was said last is found as well as what is sealed.
alter table memoryos.conversation
    add column ahead_through bigint not null default 0,
    add check (ahead_through < next_seq);
comment on column memoryos.conversation.ahead_through is
    'Turns up to here were indexed while they were hot; their page finds them done.';
create index conversation_unindexed_tail on memoryos.conversation (last_activity_at)
    where greatest(sealed_through, ahead_through) < next_seq - 1;
grant select (ahead_through) on memoryos.conversation to memoryos_ledger;

-- What may be recalled, and the text its index rows are made from. A turn has left recall when it is marked so, or
-- when its page is archived and everything known from it is forgotten. A hot turn has no page yet.
create or replace view memoryos.recallable with (security_invoker = true) as
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
                    where gone.tenant_id = t.tenant_id and gone.conversation_id = t.conversation_id and gone.seq = t.seq)
union all
select t.tenant_id, 'turn', t.turn_id, t.content, 'tail:' || c.conversation_id, t.seq <= c.ahead_through
  from memoryos.conversation c
  join memoryos.turn t on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id and t.seq > c.sealed_through
 where t.kind = 'normal'
   and not exists (select from memoryos.turn_left gone
                    where gone.tenant_id = t.tenant_id and gone.conversation_id = t.conversation_id and gone.seq = t.seq);
