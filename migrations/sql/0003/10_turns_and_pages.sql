-- Invariants are views: an empty view is a kept promise, a row is one violation and says what repairs it.
create view memoryos.violation_i2_gap with (security_invoker = true) as
select c.tenant_id, c.conversation_id::text as subject,
       format('Conversation %s has %s turns from seq %s to %s but counted %s; restore the missing turns from the senders'' '
              'outboxes or a backup.', c.external_id, coalesce(t.turns, 0), coalesce(t.first_seq, 0),
              coalesce(t.last_seq, 0), c.next_seq - 1) as sentence
  from memoryos.conversation c
  left join (select tenant_id, conversation_id, count(*) as turns, min(seq) as first_seq, max(seq) as last_seq
               from memoryos.turn group by tenant_id, conversation_id) t
    on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id
 where coalesce(t.turns, 0) <> c.next_seq - 1 or coalesce(t.last_seq, 0) <> c.next_seq - 1
    or coalesce(t.first_seq, 1) <> 1;
comment on view memoryos.violation_i2_gap is 'I2: in every conversation seq runs from 1 to n without a gap.';

create view memoryos.violation_i3_place with (security_invoker = true) as
select t.tenant_id, t.turn_id::text as subject,
       format('Turn %s of conversation %s lies on %s pages and is %s; rebuild the pages of the conversation.',
              t.seq, c.external_id, held.pages,
              case when t.seq > c.sealed_through then 'in the open tail too' else 'not in the open tail' end) as sentence
  from memoryos.turn t
  join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
  -- Two pages that start at or before a turn are enough to see it held twice; overlaps further back are I4's.
  cross join lateral (
       select count(*) as pages from (
           select p.last_seq from memoryos.page p
            where p.tenant_id = t.tenant_id and p.conversation_id = t.conversation_id and p.first_seq <= t.seq
            order by p.first_seq desc limit 2) near
        where near.last_seq >= t.seq) held
 where held.pages <> case when t.seq > c.sealed_through then 0 else 1 end
union all
select p.tenant_id, p.page_id::text,
       format('Page %s is %s but archived_at is %s; set the tier that its history says.',
              p.page_id, p.tier, coalesce(p.archived_at::text, 'empty'))
  from memoryos.page p
 where (p.tier = 'archived') <> (p.archived_at is not null);
comment on view memoryos.violation_i3_place is 'I3: every turn lies in the open tail or on exactly one page, every page in exactly one tier.';

create view memoryos.violation_i4_cover with (security_invoker = true) as
select p.tenant_id, p.page_id::text as subject,
       format('Page %s starts at turn %s, but the page before it ends at %s; rebuild the pages of the conversation.',
              p.page_id, p.first_seq, p.before) as sentence
  from (select tenant_id, page_id, first_seq,
               coalesce(lag(last_seq) over (partition by tenant_id, conversation_id order by first_seq), 0) as before
          from memoryos.page) p
 where p.first_seq <> p.before + 1
union all
select c.tenant_id, c.conversation_id::text,
       format('Conversation %s says it is sealed through turn %s, but its pages end at %s; rebuild its pages.',
              c.external_id, c.sealed_through, coalesce(p.last_seq, 0))
  from memoryos.conversation c
  left join (select tenant_id, conversation_id, max(last_seq) as last_seq
               from memoryos.page group by tenant_id, conversation_id) p
    on p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id
 where coalesce(p.last_seq, 0) <> c.sealed_through;
comment on view memoryos.violation_i4_cover is 'I4: pages do not overlap and cover a contiguous beginning of their conversation.';
