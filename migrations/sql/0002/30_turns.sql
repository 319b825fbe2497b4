create view memory_v1.turns with (security_invoker = true) as
select t.tenant_id, s.user_id, s.agent_id, c.external_id as conversation_id, t.seq, t.turn_id, t.client_turn_id,
       t.role, t.speaker, t.content, t.parts, t.metadata, t.kind, t.lang, t.occurred_at, t.utc_offset_minutes, t.recorded_at,
       case when t.seq > c.sealed_through then 'hot' else p.tier end as tier,
       p.page_id, t.scope_id, t.conversation_id as conversation_key
  from memoryos.turn t
  join memoryos.conversation c on c.tenant_id = t.tenant_id and c.conversation_id = t.conversation_id
  join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
  left join lateral (
       select before.page_id, before.tier, before.last_seq from memoryos.page before
        where before.tenant_id = t.tenant_id and before.conversation_id = t.conversation_id and before.first_seq <= t.seq
        order by before.first_seq desc limit 1) p on p.last_seq >= t.seq;
comment on view memory_v1.turns is 'Every recorded turn, verbatim; turns never change.';
comment on column memory_v1.turns.seq is 'Place in its conversation: 1, 2, 3 without gaps, in the order of recording.';
comment on column memory_v1.turns.client_turn_id is 'Name the sender gave the turn; sending it again records nothing new.';
comment on column memory_v1.turns.role is 'Who speaks: user, assistant, system or tool.';
comment on column memory_v1.turns.speaker is 'Name of the speaker.';
comment on column memory_v1.turns.content is 'What was said, as plain text.';
comment on column memory_v1.turns.parts is 'What was sent when it was a list of parts, else null.';
comment on column memory_v1.turns.metadata is 'What the sender attached.';
comment on column memory_v1.turns.kind is 'normal, system, or recalled (text that came out of this memory and is not learnt again).';
comment on column memory_v1.turns.occurred_at is 'When it was said, by the sender''s clock.';
comment on column memory_v1.turns.utc_offset_minutes is 'Offset from UTC it was said in, in minutes.';
comment on column memory_v1.turns.recorded_at is 'When it was committed.';
comment on column memory_v1.turns.tier is 'hot (in the verbatim buffer), warm (on a page), archived (its page left warm search).';
comment on column memory_v1.turns.page_id is 'The page it lies on; null while it is hot.';

create view memory_v1.hot_turns with (security_invoker = true) as
select t.tenant_id, s.user_id, s.agent_id, c.external_id as conversation_id, t.seq, t.turn_id, t.role, t.speaker, t.content,
       t.lang, t.occurred_at, 'tail' as why, null::uuid as page_id, t.scope_id, t.conversation_id as conversation_key
  from memoryos.conversation c
  join memoryos.turn t on t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id and t.seq > c.sealed_through
  join memoryos.scope s on s.tenant_id = c.tenant_id and s.scope_id = c.scope_id
 where c.sealed_through < c.next_seq - 1
union all
select t.tenant_id, s.user_id, s.agent_id, c.external_id, t.seq, t.turn_id, t.role, t.speaker, t.content,
       t.lang, t.occurred_at, 'pinned', p.page_id, t.scope_id, t.conversation_id
  from memoryos.page p
  join memoryos.turn t on t.tenant_id = p.tenant_id and t.conversation_id = p.conversation_id
                      and t.seq between p.first_seq and p.last_seq
  join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
  join memoryos.scope s on s.tenant_id = p.tenant_id and s.scope_id = p.scope_id
 where p.pinned_at is not null;
comment on view memory_v1.hot_turns is 'What is shown verbatim in every context: the unsealed tail of each conversation, and pinned pages.';
comment on column memory_v1.hot_turns.seq is 'Place in its conversation.';
comment on column memory_v1.hot_turns.role is 'Who speaks: user, assistant, system or tool.';
comment on column memory_v1.hot_turns.speaker is 'Name of the speaker.';
comment on column memory_v1.hot_turns.content is 'What was said, as plain text.';
comment on column memory_v1.hot_turns.occurred_at is 'When it was said, by the sender''s clock.';
comment on column memory_v1.hot_turns.why is 'tail (not sealed yet) or pinned (its page is read so often that it came back).';
comment on column memory_v1.hot_turns.page_id is 'The pinned page it lies on; null in the tail.';

create view memory_v1.conversations with (security_invoker = true) as
select c.tenant_id, s.user_id, s.agent_id, c.external_id as conversation_id,
       c.next_seq - 1 as turns, c.next_seq - 1 - c.sealed_through as hot_turns,
       (select count(*) from memoryos.page p
         where p.tenant_id = c.tenant_id and p.conversation_id = c.conversation_id) as pages,
       c.sealed_through, c.indexed_through, c.assigned_through, c.created_at, c.last_turn_at, c.last_activity_at, c.closed_at,
       c.scope_id, c.conversation_id as conversation_key
  from memoryos.conversation c
  join memoryos.scope s on s.tenant_id = c.tenant_id and s.scope_id = c.scope_id;
comment on view memory_v1.conversations is 'Every conversation, and how far it has travelled through the pipeline.';
comment on column memory_v1.conversations.turns is 'Turns recorded.';
comment on column memory_v1.conversations.hot_turns is 'Turns still in the verbatim buffer.';
comment on column memory_v1.conversations.pages is 'Pages sealed.';
comment on column memory_v1.conversations.sealed_through is 'Turns up to this seq lie on pages.';
comment on column memory_v1.conversations.indexed_through is 'Turns up to this seq have vectors; later ones are found by their words.';
comment on column memory_v1.conversations.assigned_through is 'Pages up to this seq belong to segments.';
comment on column memory_v1.conversations.created_at is 'When its first turn was recorded.';
comment on column memory_v1.conversations.last_turn_at is 'When its latest turn was said.';
comment on column memory_v1.conversations.last_activity_at is 'When a turn was last recorded; an idle conversation is sealed.';
comment on column memory_v1.conversations.closed_at is 'When it was closed, or null.';
