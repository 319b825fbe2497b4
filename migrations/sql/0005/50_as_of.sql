-- As a memory was at a moment: what was recorded by then, in the tier and the standing it had. What was purged or
-- erased since is not brought back.
create function memory_v1.turns_as_of(at timestamptz) returns setof memory_v1.turns
language sql stable as $$
select t.tenant_id, t.user_id, t.agent_id, t.conversation_id, t.seq, t.turn_id, t.client_turn_id, t.role, t.speaker,
       t.content, t.parts, t.metadata, t.kind, t.lang, t.occurred_at, t.utc_offset_minutes, t.recorded_at,
       case when p.page_id is null then 'hot' when p.archived_at <= at then 'archived' else 'warm' end,
       p.page_id, t.scope_id, t.conversation_key
  from memory_v1.turns t
  left join memoryos.page p on p.tenant_id = t.tenant_id and p.page_id = t.page_id and p.sealed_at <= at
 where t.recorded_at <= at
$$;
comment on function memory_v1.turns_as_of is 'Every turn recorded by then, in the tier it was in.';

create function memory_v1.pages_as_of(at timestamptz) returns setof memory_v1.pages
language sql stable as $$
select p.tenant_id, p.user_id, p.agent_id, p.conversation_id, p.page_id, p.first_seq, p.last_seq, p.turns,
       p.first_turn_at, p.last_turn_at, case when p.archived_at <= at then 'archived' else 'warm' end, p.lang,
       case when p.summarized_at <= at then p.summary end,
       case when p.summarized_at <= at then p.keywords else '{}' end,
       case when p.summarized_at <= at then p.topics else '{}' end,
       case when p.summarized_at <= at then p.continues end,
       case when p.summarized_at <= at then p.prev_page_id end,
       case when p.summarized_at <= at then p.chain_id end,
       case when p.summarized_at <= at then p.meta_summary end,
       case when p.summarized_at <= at then p.summary_model end,
       p.sealed_at, case when p.summarized_at <= at then p.summarized_at end,
       case when p.indexed_at <= at then p.indexed_at end,
       cast(null as double precision), cast(null as timestamptz), cast(null as timestamptz),
       case when p.extracted_at <= at then p.distill_cause end,
       case when p.extracted_at <= at then p.extract_ordinal end,
       case when p.extracted_at <= at then p.extracted_by end,
       case when p.extracted_at <= at then p.extracted_at end,
       case when p.extracted_at <= at then p.knowledge_count end,
       case when p.archived_at <= at then p.archived_at end,
       array(select m.segment_id from memoryos.page_segment m
              where m.tenant_id = p.tenant_id and m.page_id = p.page_id and m.assigned_at <= at
              order by m.theme_rank, m.segment_id),
       p.scope_id, p.conversation_key
  from memory_v1.pages p
 where p.sealed_at <= at
$$;
comment on function memory_v1.pages_as_of is 'Every page sealed by then; heat is not kept, so it is null.';

create function memory_v1.knowledge_as_of(at timestamptz) returns setof memory_v1.knowledge_history
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
       k.scope_id
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
comment on function memory_v1.knowledge_as_of is
    'Every version of everything known by then, with the standing and the weight it had; active rows were held true.';

create view memory_v1.rollups with (security_invoker = true) as
select r.tenant_id, s.user_id, s.agent_id, r.period, r.summary, r.keywords, r.lang, r.page_count as pages, r.page_ids,
       r.model, r.refreshed_at, r.version, r.scope_id
  from memoryos.rollup r
  join memoryos.scope s on s.tenant_id = r.tenant_id and s.scope_id = r.scope_id;
comment on view memory_v1.rollups is 'What a day was about, and the whole so far; refreshed as pages come.';
comment on column memory_v1.rollups.tenant_id is 'Whose memory it is; every row you can see has yours.';
comment on column memory_v1.rollups.user_id is 'The user, as the sender names them.';
comment on column memory_v1.rollups.agent_id is 'The agent, as the sender names it.';
comment on column memory_v1.rollups.period is 'The day (2026-03-01, by its pages'' own offset), or all.';
comment on column memory_v1.rollups.summary is 'What was said in it, in the language most of it was said in.';
comment on column memory_v1.rollups.keywords is 'Keywords of it.';
comment on column memory_v1.rollups.lang is 'Language: en, ja, ko, zh, or und when it cannot be told.';
comment on column memory_v1.rollups.pages is 'How many pages it is made of.';
comment on column memory_v1.rollups.page_ids is 'Those pages; for the whole, the pages of the days it is made of.';
comment on column memory_v1.rollups.model is 'Model and prompt version that wrote it.';
comment on column memory_v1.rollups.refreshed_at is 'When it was last written.';
comment on column memory_v1.rollups.version is 'How many times it was written, counted from 1.';
comment on column memory_v1.rollups.scope_id is 'The memory of this user with this agent, by its id inside the pipeline.';

grant select on memory_v1.rollups to memoryos_app, memoryos_reader;
grant execute on all functions in schema memory_v1 to memoryos_app, memoryos_reader;
revoke execute on all functions in schema memory_v1 from public;
do $$
declare
    needed record;
begin
    for needed in
        select used.relname, string_agg(distinct quote_ident(a.attname), ', ') as columns
          from pg_catalog.pg_depend d
          join pg_catalog.pg_rewrite r on r.oid = d.objid
          join pg_catalog.pg_class view on view.oid = r.ev_class and view.relnamespace = 'memory_v1'::regnamespace
          join pg_catalog.pg_class used on used.oid = d.refobjid and used.relnamespace = 'memoryos'::regnamespace
          join pg_catalog.pg_attribute a on a.attrelid = used.oid and a.attnum = d.refobjsubid
         where d.classid = 'pg_catalog.pg_rewrite'::regclass and d.refclassid = 'pg_catalog.pg_class'::regclass
           and d.refobjsubid > 0
         group by used.relname
    loop
        execute format('grant select (%s) on memoryos.%I to memoryos_reader', needed.columns, needed.relname);
    end loop;
end $$;
-- What the functions read beyond the views.
grant select on memoryos.knowledge_past to memoryos_reader;
grant select (added_at) on memoryos.knowledge_source to memoryos_reader;
grant select (created_at) on memoryos.knowledge_note to memoryos_reader;
grant select (assigned_at) on memoryos.page_segment to memoryos_reader;
