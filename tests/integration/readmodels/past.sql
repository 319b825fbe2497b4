-- One user's memory, whole: at least one row in every table that can hold something of a user.
insert into memoryos.scope (tenant_id, scope_id, user_id, agent_id, extract_ordinal, merged_ordinal)
values (:tenant, :scope, :user, :agent, 1, 1);
insert into memoryos.policy (tenant_id, policy_id, user_id, preset, version, settings)
values (:tenant, :policy, :user, 'default', 1, jsonb_build_object('note', cast(:canary as text)));
insert into memoryos.conversation (tenant_id, conversation_id, scope_id, external_id, next_seq, sealed_through,
                                   indexed_through, last_turn_at)
values (:tenant, :conversation, :scope, 'c1', 8, 5, 5, '2026-05-04T09:07:00Z');
insert into memoryos.turn (tenant_id, conversation_id, seq, turn_id, scope_id, client_turn_id, body_sha256, role, speaker,
                           content, metadata, lang, occurred_at, utc_offset_minutes)
select :tenant, :conversation, n, cast(md5(cast(:scope as text) || n) as uuid), :scope, 't' || n, sha256('x'), 'user',
       :user, 'turn ' || n || ' ' || :canary, jsonb_build_object('m', cast(:canary as text)), 'en',
       timestamptz '2026-05-04T09:00:00Z' + n * interval '1 minute', 540 from generate_series(1, 7) n;
insert into memoryos.page (tenant_id, page_id, scope_id, conversation_id, first_seq, last_seq, first_turn_at, last_turn_at,
                           lang, summary, keywords, topics, meta_summary, summary_model, summarized_at, indexed_at,
                           extract_ordinal, extracted_by, extracted_at, knowledge_count, distill_cause)
values (:tenant, :page, :scope, :conversation, 1, 5, '2026-05-04T09:01:00Z', '2026-05-04T09:05:00Z', 'en', :canary,
        array[cast(:canary as text)], array[cast(:canary as text)], :canary, 'm', now(), now(), 1, 'm', now(), 2, 'cooled');
insert into memoryos.segment (tenant_id, segment_id, scope_id, theme, summary, keywords, l_interaction, page_count)
values (:tenant, :segment, :scope, :canary, :canary, array[cast(:canary as text)], 1, 1);
insert into memoryos.page_segment (tenant_id, page_id, segment_id) values (:tenant, :page, :segment);
insert into memoryos.candidate (tenant_id, page_id, ordinal, scope_id, extract_ordinal, payload)
values (:tenant, :page, 1, :scope, 1, jsonb_build_object('content', cast(:canary as text)));
insert into memoryos.knowledge (tenant_id, knowledge_id, scope_id, lineage_id, version, kind, content, content_sha256, lang,
                                actor, slot, slot_value, importance, strength_days, turn_at, valid_from, extracted_by,
                                status, superseded_by, retired_at)
values (:tenant, :old, :scope, :old, 1, 'fact', 'old ' || :canary, sha256('a'), 'en', :user, 'residence', :canary, 0.5, 50,
        '2026-05-04T09:01:00Z', '2026-05-04T09:01:00Z', 'm', 'superseded', :new, now()),
       (:tenant, :new, :scope, :old, 2, 'fact', 'new ' || :canary, sha256('b'), 'en', :user, 'residence', :canary, 0.5, 50,
        '2026-05-04T09:02:00Z', '2026-05-04T09:02:00Z', 'm', 'active', null, null),
       (:tenant, :other, :scope, :other, 1, 'note', 'other ' || :canary, sha256('c'), 'en', :user, null, null, 0.5, 50,
        '2026-05-04T09:03:00Z', '2026-05-04T09:03:00Z', 'm', 'active', null, null);
insert into memoryos.knowledge_source (tenant_id, knowledge_id, conversation_id, seq, page_id)
values (:tenant, :old, :conversation, 1, :page), (:tenant, :new, :conversation, 2, :page),
       (:tenant, :new, :conversation, 3, :page), (:tenant, :other, :conversation, 3, :page);
update memoryos.knowledge set forget_at = now() + interval '9 days' where tenant_id = :tenant and knowledge_id = :other;
insert into memoryos.rollup (tenant_id, scope_id, period, summary, lang, page_count, page_ids, model)
values (:tenant, :scope, '2026-05-04', :canary, 'en', 1, array[cast(:page as uuid)], 'm');
insert into memoryos.turn_left (tenant_id, conversation_id, seq) values (:tenant, :conversation, 7);
insert into memoryos.knowledge_note (tenant_id, knowledge_id, version, context) values (:tenant, :new, 1, :canary);
insert into memoryos.knowledge_link (tenant_id, scope_id, source_id, target_id, type, weight, reason, created_by)
values (:tenant, :scope, :new, :other, 'similar', 0.9, :canary, 'rule');
insert into memoryos.verdict (tenant_id, verdict_id, scope_id, decision, new_knowledge_id, old_knowledge_id, new_content,
                              old_content, decided_by)
values (:tenant, :verdict, :scope, 'UPDATE', :new, :old, :canary, :canary, 'rule');
insert into memoryos.entity (tenant_id, entity_id, scope_id, name, name_norm, type)
values (:tenant, :segment, :scope, :canary, :canary, 'person'), (:tenant, :page, :scope, 'Busan', 'busan', 'place');
insert into memoryos.mention (tenant_id, knowledge_id, entity_id) values (:tenant, :new, :segment), (:tenant, :new, :page);
insert into memoryos.relation (tenant_id, relation_id, scope_id, source_id, name, target_id, knowledge_id, valid_from)
values (:tenant, :verdict, :scope, :segment, :canary, :page, :new, now());
insert into memoryos.trait (tenant_id, scope_id, actor, dimension, level, confidence, knowledge_ids)
values (:tenant, :scope, :user, 'openness', 'high', 0.7, array[cast(:new as uuid)]);
insert into memoryos.vector_space (model, revision, dimensions, token_cap) values ('hash', '1', 3, 512) on conflict do nothing;
insert into memoryos.embedding (tenant_id, space_id, owner_kind, owner_id, scope_id, vec, input_sha256, tokens)
select :tenant, space_id, kind, cast(owner as uuid), :scope, '[1,0,0]', sha256(convert_to(content, 'UTF8')), 1
  from memoryos.vector_space,
       (values ('page', cast(:page as text), cast(:canary as text)), ('segment', cast(:segment as text), :canary),
               ('knowledge', cast(:new as text), 'new ' || :canary), ('knowledge', cast(:other as text), 'other ' || :canary)
        union all
        select 'turn', cast(turn_id as text), content from memoryos.turn
         where tenant_id = :tenant and conversation_id = :conversation and seq <= 5) owners(kind, owner, content)
 where model = 'hash';
insert into memoryos.posting (tenant_id, scope_id, term, owner_kind, owner_id, tf, terms)
values (:tenant, :scope, :canary, 'page', :page, 1, 1), (:tenant, :scope, :canary, 'knowledge', :new, 1, 1);
insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms)
values (:tenant, :scope, 'page', :page, 1), (:tenant, :scope, 'knowledge', :new, 1);
insert into memoryos.work (tenant_id, kind, subject_key, scope_id, state, finished_at)
values (:tenant, 'summarize', cast(:page as text), :scope, 'done', now()),
       (:tenant, 'embed', 'turns:' || cast(:page as text), :scope, 'done', now()),
       (:tenant, 'embed', 'summary:' || cast(:page as text), :scope, 'done', now()),
       (:tenant, 'distill', cast(:page as text), :scope, 'done', now()),
       (:tenant, 'merge', cast(:scope as text), :scope, 'done', now()),
       (:tenant, 'heat', cast(:scope as text), :scope, 'dead', now());
insert into memoryos.dead_letter (tenant_id, work_id, fence, error_class, error)
select :tenant, work_id, 1, 'permanent', :canary from memoryos.work
 where tenant_id = :tenant and scope_id = :scope and kind = 'heat';
insert into memoryos.llm_call (tenant_id, request_sha256, task, scope_id, work_id, fence, model, prompt_version, response)
select :tenant, sha256(convert_to(:user, 'UTF8')), 'summarize', :scope, work_id, 1, 'm', 'p1',
       jsonb_build_object('summary', cast(:canary as text)) from memoryos.work
 where tenant_id = :tenant and scope_id = :scope and kind = 'summarize';
insert into memoryos.event (tenant_id, kind, scope_id, conversation_id, subject_id, seq, amount)
values (:tenant, 'turns_recorded', :scope, :conversation, :conversation, 7, 7),
       (:tenant, 'page_sealed', :scope, :conversation, :page, null, 5);
insert into memoryos.access_event (tenant_id, retrieval_id, owner_kind, owner_id, scope_id, cause)
values (:tenant, :verdict, 'page', :page, :scope, 'retrieved');
