create view memory_v1.pages with (security_invoker = true) as
select p.tenant_id, s.user_id, s.agent_id, c.external_id as conversation_id, p.page_id, p.first_seq, p.last_seq,
       p.last_seq - p.first_seq + 1 as turns, p.first_turn_at, p.last_turn_at, p.tier, p.lang, p.summary, p.keywords, p.topics,
       p.continues, p.prev_page_id, p.chain_id, p.meta_summary, p.summary_model, p.sealed_at, p.summarized_at, p.indexed_at,
       memoryos.heat_now(p.heat, p.heat_at, coalesce(own.half_life_days, 7.0), (select memoryos.now())) as heat,
       p.cools_at, p.pinned_at, p.distill_cause, p.extract_ordinal, p.extracted_by, p.extracted_at, p.knowledge_count,
       p.archived_at,
       array(select m.segment_id from memoryos.page_segment m
              where m.tenant_id = p.tenant_id and m.page_id = p.page_id order by m.theme_rank, m.segment_id) as segment_ids,
       p.scope_id, p.conversation_id as conversation_key
  from memoryos.page p
  join memoryos.conversation c on c.tenant_id = p.tenant_id and c.conversation_id = p.conversation_id
  join memoryos.scope s on s.tenant_id = p.tenant_id and s.scope_id = p.scope_id
  left join lateral (
       select (o.settings ->> 'heat_half_life_days')::double precision as half_life_days from memoryos.policy o
        where o.tenant_id = p.tenant_id and (o.user_id = s.user_id or o.user_id is null)
          and o.settings ->> 'heat_half_life_days' is not null
        order by o.user_id nulls last, o.version desc limit 1) own on true;
comment on view memory_v1.pages is 'Sealed pages: a few consecutive turns, what is said about them, and how warm they are right now.';
comment on column memory_v1.pages.first_seq is 'First turn of the page.';
comment on column memory_v1.pages.last_seq is 'Last turn of the page.';
comment on column memory_v1.pages.turns is 'How many turns lie on it.';
comment on column memory_v1.pages.first_turn_at is 'When its first turn was said.';
comment on column memory_v1.pages.last_turn_at is 'When its last turn was said.';
comment on column memory_v1.pages.tier is 'warm (its summary is searched) or archived (only its turns and its knowledge are).';
comment on column memory_v1.pages.summary is 'Summary in the language of its turns; null until summarized.';
comment on column memory_v1.pages.keywords is 'Keywords of the page.';
comment on column memory_v1.pages.topics is 'What it is about: at most two topics.';
comment on column memory_v1.pages.continues is 'Whether it goes on with what the page before was about.';
comment on column memory_v1.pages.prev_page_id is 'The page it continues.';
comment on column memory_v1.pages.chain_id is 'Shared by the pages that continue one another.';
comment on column memory_v1.pages.meta_summary is 'Running summary of its chain so far.';
comment on column memory_v1.pages.summary_model is 'Model and prompt version that wrote the summary.';
comment on column memory_v1.pages.sealed_at is 'When its turns left the hot buffer.';
comment on column memory_v1.pages.summarized_at is 'When it was summarized.';
comment on column memory_v1.pages.indexed_at is 'When its turns got their vectors.';
comment on column memory_v1.pages.heat is 'Heat right now, 0 to 1, computed as it is read: 1 when sealed, halved every half-life, lifted by every access.';
comment on column memory_v1.pages.cools_at is 'When it falls below the cooling threshold if nobody reads it; null once that was handled.';
comment on column memory_v1.pages.pinned_at is 'Since when it is shown in hot, or null.';
comment on column memory_v1.pages.distill_cause is 'Why it was handed to distillation: cooled, heated or sealed.';
comment on column memory_v1.pages.extract_ordinal is 'Its place in the order in which this memory''s pages are distilled and merged.';
comment on column memory_v1.pages.extracted_by is 'Model and prompt version that distilled it.';
comment on column memory_v1.pages.extracted_at is 'When it was distilled.';
comment on column memory_v1.pages.knowledge_count is 'Candidates distillation found: 0 is an explicit nothing, null is not distilled yet.';
comment on column memory_v1.pages.archived_at is 'When it left warm search, or null.';
comment on column memory_v1.pages.segment_ids is 'Segments it belongs to, best match first.';

create view memory_v1.segments with (security_invoker = true) as
select g.tenant_id, s.user_id, s.agent_id, g.segment_id, g.theme, g.summary, g.keywords, g.page_count as pages,
       g.n_visit as visits, g.l_interaction as interactions, g.last_visit_at,
       memoryos.segment_heat_now(
           g.n_visit, g.l_interaction, g.last_visit_at, coalesce(own.tau_hours, 24.0), (select memoryos.now())) as heat,
       g.created_at, g.scope_id
  from memoryos.segment g
  join memoryos.scope s on s.tenant_id = g.tenant_id and s.scope_id = g.scope_id
  left join lateral (
       select (o.settings ->> 'segment_recency_tau_hours')::double precision as tau_hours from memoryos.policy o
        where o.tenant_id = g.tenant_id and (o.user_id = s.user_id or o.user_id is null)
          and o.settings ->> 'segment_recency_tau_hours' is not null
        order by o.user_id nulls last, o.version desc limit 1) own on true;
comment on view memory_v1.segments is 'Themes: pages of one user and agent that are about the same thing, across conversations.';
comment on column memory_v1.segments.segment_id is 'Id of the segment.';
comment on column memory_v1.segments.theme is 'Its theme in a few words.';
comment on column memory_v1.segments.summary is 'Summary of its pages.';
comment on column memory_v1.segments.keywords is 'Keywords of its pages.';
comment on column memory_v1.segments.pages is 'Pages that belong to it.';
comment on column memory_v1.segments.visits is 'Accesses since its pages were last handed to distillation.';
comment on column memory_v1.segments.interactions is 'Pages that joined since then.';
comment on column memory_v1.segments.last_visit_at is 'When it was last read or grew.';
comment on column memory_v1.segments.heat is 'Linear heat right now, computed as it is read: visits + interactions + recency.';
comment on column memory_v1.segments.created_at is 'When it was started.';
