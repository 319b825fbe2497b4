create view memory_v1.knowledge_history with (security_invoker = true) as
select k.tenant_id, s.user_id, s.agent_id, k.knowledge_id, k.lineage_id, k.version, k.status, k.kind, k.content, k.lang, k.actor,
       k.slot, k.slot_value, k.keywords, k.attributes, n.context as note, n.tags, k.importance,
       memoryos.weight_now(k.w0, k.strength_days, k.last_reinforced_at, (select memoryos.now())) as weight,
       k.strength_days, k.last_reinforced_at, k.forget_at, k.pinned_at, k.event_at, k.event_precision, k.turn_at,
       k.valid_from, k.valid_to, k.superseded_by, k.close_reason as reason,
       k.recorded_at, k.retired_at, k.forgotten_at, k.purge_at, k.extracted_by,
       array(select t.turn_id from memoryos.knowledge_source o
               join memoryos.turn t on t.tenant_id = o.tenant_id and t.conversation_id = o.conversation_id and t.seq = o.seq
              where o.tenant_id = k.tenant_id and o.knowledge_id = k.knowledge_id
              order by t.occurred_at, t.conversation_id, t.seq) as source_turn_ids,
       k.scope_id
  from memoryos.knowledge k
  join memoryos.scope s on s.tenant_id = k.tenant_id and s.scope_id = k.scope_id
  left join lateral (
       select latest.context, latest.tags from memoryos.knowledge_note latest
        where latest.tenant_id = k.tenant_id and latest.knowledge_id = k.knowledge_id
        order by latest.version desc limit 1) n on true;
comment on view memory_v1.knowledge_history is
    'Every version of everything known, also what was superseded, closed or forgotten (until it is purged).';
comment on column memory_v1.knowledge_history.version is 'Counts the versions of one lineage, from 1.';
comment on column memory_v1.knowledge_history.status is 'active, superseded (a newer version replaced it), closed (no longer true) or forgotten.';
comment on column memory_v1.knowledge_history.valid_to is 'Until when it was true, or null.';
comment on column memory_v1.knowledge_history.superseded_by is 'The knowledge that replaced it.';
comment on column memory_v1.knowledge_history.reason is 'Why it was retired.';
comment on column memory_v1.knowledge_history.retired_at is 'When it stopped being current here.';
comment on column memory_v1.knowledge_history.forgotten_at is 'When it was forgotten, or null.';
comment on column memory_v1.knowledge_history.purge_at is 'When a forgotten row is deleted for good, unless it is restored before.';

create view memory_v1.knowledge with (security_invoker = true) as
select h.tenant_id, h.user_id, h.agent_id, h.knowledge_id, h.lineage_id, h.version, h.kind, h.content, h.lang, h.actor,
       h.slot, h.slot_value, h.keywords, h.attributes, h.note, h.tags, h.importance, h.weight, h.strength_days,
       h.last_reinforced_at, h.forget_at, h.pinned_at, h.event_at, h.event_precision, h.turn_at, h.valid_from,
       h.recorded_at, h.extracted_by, h.source_turn_ids, h.scope_id
  from memory_v1.knowledge_history h
 where h.status = 'active';
comment on view memory_v1.knowledge is 'What is held to be true now: self-contained statements, each citing the turns it came from.';
comment on column memory_v1.knowledge.version is 'How many times this was revised, counted from 1.';

create view memory_v1.links with (security_invoker = true) as
select l.tenant_id, s.user_id, s.agent_id, l.source_id, l.target_id, l.type, l.weight, l.reason, l.created_by, l.created_at,
       a.content as source_content, b.content as target_content, l.scope_id
  from memoryos.knowledge_link l
  join memoryos.scope s on s.tenant_id = l.tenant_id and s.scope_id = l.scope_id
  join memoryos.knowledge a on a.tenant_id = l.tenant_id and a.knowledge_id = l.source_id
  join memoryos.knowledge b on b.tenant_id = l.tenant_id and b.knowledge_id = l.target_id
 where a.status <> 'forgotten' and b.status <> 'forgotten';
comment on view memory_v1.links is 'Links between statements; a link to something forgotten is not shown.';
comment on column memory_v1.links.source_id is 'Knowledge the link starts at.';
comment on column memory_v1.links.target_id is 'Knowledge the link points to.';
comment on column memory_v1.links.type is 'What kind of link it is.';
comment on column memory_v1.links.weight is 'How strong it is, 0 to 1.';
comment on column memory_v1.links.reason is 'Why it was made.';
comment on column memory_v1.links.created_by is 'Model or rule that made it.';
comment on column memory_v1.links.created_at is 'When it was made.';
comment on column memory_v1.links.source_content is 'The statement it starts at.';
comment on column memory_v1.links.target_content is 'The statement it points to.';

create view memory_v1.profile with (security_invoker = true) as
select t.tenant_id, s.user_id, s.agent_id, t.actor, t.dimension, t.level, t.confidence, t.knowledge_ids, t.updated_at, t.version,
       t.scope_id
  from memoryos.trait t
  join memoryos.scope s on s.tenant_id = t.tenant_id and s.scope_id = t.scope_id
 where exists (select from memoryos.knowledge k
                where k.tenant_id = t.tenant_id and k.knowledge_id = any(t.knowledge_ids) and k.status = 'active');
comment on view memory_v1.profile is
    'What the memory makes of a person: one row a trait, each with its evidence, as long as some of that is held to be true.';
comment on column memory_v1.profile.dimension is 'Which trait.';
comment on column memory_v1.profile.level is 'How it is pronounced.';
comment on column memory_v1.profile.confidence is 'How sure this is, 0 to 1.';
comment on column memory_v1.profile.knowledge_ids is 'The knowledge that is its evidence.';
comment on column memory_v1.profile.updated_at is 'When it last changed.';
comment on column memory_v1.profile.version is 'How many times it was written, counted from 1.';
