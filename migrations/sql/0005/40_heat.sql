-- Heat under the policy of its scope; a setting that is not there is the default.
create function memoryos.page_heat_of(heat double precision, heat_at timestamptz, ticks bigint, settings jsonb, at timestamptz)
returns double precision language sql immutable
return case when settings ->> 'heat' = 'ema_tick'
            then heat * power(1 - coalesce((settings ->> 'access_gain')::double precision, 0.1), ticks)
            else memoryos.heat_now(heat, heat_at, coalesce((settings ->> 'heat_half_life_days')::double precision, 7.0), at)
       end;
comment on function memoryos.page_heat_of is 'EMA heat at a moment, by time or by tick.';

create function memoryos.segment_heat_of(visits integer, interactions integer, visited_at timestamptz, settings jsonb, at timestamptz)
returns double precision language sql immutable
return coalesce((settings ->> 'segment_visit_weight')::double precision, 1) * visits
     + coalesce((settings ->> 'segment_page_weight')::double precision, 1) * interactions
     + coalesce((settings ->> 'segment_recency_weight')::double precision, 1)
       * case coalesce(settings ->> 'segment_recency', 'hours')
              when 'constant' then 1
              when 'paper' then exp(-greatest(extract(epoch from at - visited_at), 0)::double precision / 1e7)
              else exp(-greatest(extract(epoch from at - visited_at), 0)::double precision
                       / (3600.0 * coalesce((settings ->> 'segment_recency_tau_hours')::double precision, 24.0))) end;
comment on function memoryos.segment_heat_of is 'Linear segment heat at a moment: weighted visits + pages + recency.';

create or replace view memory_v1.pages with (security_invoker = true) as
select p.tenant_id, s.user_id, s.agent_id, c.external_id as conversation_id, p.page_id, p.first_seq, p.last_seq,
       p.last_seq - p.first_seq + 1 as turns, p.first_turn_at, p.last_turn_at, p.tier, p.lang, p.summary, p.keywords, p.topics,
       p.continues, p.prev_page_id, p.chain_id, p.meta_summary, p.summary_model, p.sealed_at, p.summarized_at, p.indexed_at,
       memoryos.page_heat_of(p.heat, p.heat_at, s.heat_ticks - p.heat_tick, own.settings, (select memoryos.now())) as heat,
       p.cools_at, p.pinned_at, p.distill_cause, p.extract_ordinal, p.extracted_by, p.extracted_at, p.knowledge_count,
       p.archived_at,
       array(select m.segment_id from memoryos.page_segment m
              where m.tenant_id = p.tenant_id and m.page_id = p.page_id order by m.theme_rank, m.segment_id) as segment_ids,
       p.scope_id, p.conversation_id as conversation_key
  from memoryos.page p
  join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
  join memoryos.scope s on s.tenant_id = p.tenant_id and s.scope_id = p.scope_id
  left join lateral (
       select o.settings from memoryos.policy o
        where o.tenant_id = s.tenant_id and (o.user_id = s.user_id or o.user_id is null)
        order by o.user_id nulls last, o.version desc limit 1) own on true;

create or replace view memory_v1.segments with (security_invoker = true) as
select g.tenant_id, s.user_id, s.agent_id, g.segment_id, g.theme, g.summary, g.keywords, g.page_count as pages,
       g.n_visit as visits, g.l_interaction as interactions, g.last_visit_at,
       memoryos.segment_heat_of(g.n_visit, g.l_interaction, g.last_visit_at, own.settings, (select memoryos.now())) as heat,
       g.created_at, g.scope_id
  from memoryos.segment g
  join memoryos.scope s on s.tenant_id = g.tenant_id and s.scope_id = g.scope_id
  left join lateral (
       select o.settings from memoryos.policy o
        where o.tenant_id = s.tenant_id and (o.user_id = s.user_id or o.user_id is null)
        order by o.user_id nulls last, o.version desc limit 1) own on true;
