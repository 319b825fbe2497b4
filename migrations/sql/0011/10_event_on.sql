-- An event is kept as a moment, at the start of its day where it was told. Read in another zone that moment lies on
-- another day, so the day is told as well, as whoever told it would write it.
create function memoryos.written_at(at timestamptz, offset_minutes integer, written_to text) returns text
language sql stable
return to_char(at at time zone 'utc' + make_interval(mins => coalesce(offset_minutes, 0)),
               case written_to when 'year' then 'YYYY' when 'month' then 'YYYY-MM'
                               when 'minute' then 'YYYY-MM-DD HH24:MI' else 'YYYY-MM-DD' end);
comment on function memoryos.written_at is 'A moment as it is written at an offset from UTC, as exactly as it is known.';
grant execute on function memoryos.written_at to memoryos_app, memoryos_ledger, memoryos_reader;

create or replace view memory_v1.knowledge_history with (security_invoker = true) as
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
       k.scope_id,
       memoryos.written_at(k.event_at, (
           select t.utc_offset_minutes from memoryos.knowledge_source o
             join memoryos.turn t on t.tenant_id = o.tenant_id and t.conversation_id = o.conversation_id and t.seq = o.seq
            where o.tenant_id = k.tenant_id and o.knowledge_id = k.knowledge_id
            order by t.occurred_at, t.conversation_id, t.seq limit 1), k.event_precision) as event_on
  from memoryos.knowledge k
  join memoryos.scope s on s.tenant_id = k.tenant_id and s.scope_id = k.scope_id
  left join lateral (
       select latest.context, latest.tags from memoryos.knowledge_note latest
        where latest.tenant_id = k.tenant_id and latest.knowledge_id = k.knowledge_id
        order by latest.version desc limit 1) n on true;

create or replace view memory_v1.knowledge with (security_invoker = true) as
select h.tenant_id, h.user_id, h.agent_id, h.knowledge_id, h.lineage_id, h.version, h.kind, h.content, h.lang, h.actor,
       h.slot, h.slot_value, h.keywords, h.attributes, h.note, h.tags, h.importance, h.weight, h.strength_days,
       h.last_reinforced_at, h.forget_at, h.pinned_at, h.event_at, h.event_precision, h.turn_at, h.valid_from,
       h.recorded_at, h.extracted_by, h.source_turn_ids, h.scope_id, h.event_on
  from memory_v1.knowledge_history h
 where h.status = 'active';

create or replace function memory_v1.knowledge_as_of(at timestamptz) returns setof memory_v1.knowledge_history
language sql stable as $$
select k.tenant_id, s.user_id, s.agent_id, k.knowledge_id, k.lineage_id, k.version, v.status, k.kind, k.content, k.lang,
       k.actor, v.slot, k.slot_value, k.keywords, k.attributes, n.context, n.tags, v.importance,
       memoryos.weight_now(k.w0, v.strength_days, v.last_reinforced_at, at),
       v.strength_days, v.last_reinforced_at, v.forget_at, v.pinned_at, k.event_at, k.event_precision, k.turn_at,
       v.valid_from, v.valid_to, v.superseded_by, v.close_reason,
       k.recorded_at, v.retired_at, v.forgotten_at, v.purge_at, k.extracted_by,
       array(select t.turn_id from memoryos.knowledge_source o
               join memoryos.turn t on t.tenant_id = o.tenant_id and t.conversation_id = o.conversation_id and t.seq = o.seq
              where o.tenant_id = k.tenant_id and o.knowledge_id = k.knowledge_id and o.added_at <= at
              order by t.occurred_at, t.conversation_id, t.seq),
       k.scope_id,
       memoryos.written_at(k.event_at, (
           select t.utc_offset_minutes from memoryos.knowledge_source o
             join memoryos.turn t on t.tenant_id = o.tenant_id and t.conversation_id = o.conversation_id and t.seq = o.seq
            where o.tenant_id = k.tenant_id and o.knowledge_id = k.knowledge_id
            order by t.occurred_at, t.conversation_id, t.seq limit 1), k.event_precision)
  from memoryos.knowledge k
  join memoryos.scope s on s.tenant_id = k.tenant_id and s.scope_id = k.scope_id
  cross join lateral (
       select changed.* from (
           select p.until, p.past_id, p.slot, p.importance, p.strength_days, p.last_reinforced_at, p.forget_at,
                  p.pinned_at, p.valid_from, p.valid_to, p.superseded_by, p.close_reason, p.status, p.retired_at,
                  p.forgotten_at, p.purge_at
             from memoryos.knowledge_past p
            where p.tenant_id = k.tenant_id and p.knowledge_id = k.knowledge_id and p.until > at
            union all
           select 'infinity', 9223372036854775807, k.slot, k.importance, k.strength_days, k.last_reinforced_at,
                  k.forget_at, k.pinned_at, k.valid_from, k.valid_to, k.superseded_by, k.close_reason, k.status,
                  k.retired_at, k.forgotten_at, k.purge_at) changed
        order by changed.until, changed.past_id limit 1) v
  left join lateral (
       select latest.context, latest.tags from memoryos.knowledge_note latest
        where latest.tenant_id = k.tenant_id and latest.knowledge_id = k.knowledge_id and latest.created_at <= at
        order by latest.version desc limit 1) n on true
 where k.recorded_at <= at
$$;

comment on column memory_v1.knowledge_history.event_on is
    'The day of event_at where it was told: 2026-03-01, or 2026-03 or 2026 where no more is known.';
comment on column memory_v1.knowledge.event_on is
    'The day of event_at where it was told: 2026-03-01, or 2026-03 or 2026 where no more is known.';
