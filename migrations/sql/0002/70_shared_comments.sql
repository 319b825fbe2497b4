-- Columns that mean the same wherever they appear are described once.
do $$
declare
    shared constant jsonb := jsonb_build_object(
        'tenant_id', 'Whose memory it is; every row you can see has yours.',
        'user_id', 'The user, as the sender names them.',
        'agent_id', 'The agent, as the sender names it.',
        'conversation_id', 'The conversation, as the sender names it.',
        'conversation_key', 'The conversation, by its id inside the pipeline.',
        'scope_id', 'The memory of this user with this agent, by its id inside the pipeline.',
        'turn_id', 'Id of the turn.',
        'page_id', 'Id of the page.',
        'lang', 'Language: en, ja, ko, zh, or und when it cannot be told.',
        'knowledge_id', 'Id of this version of the statement.',
        'lineage_id', 'Shared by all versions of one statement.',
        'kind', 'fact, note, user_kb, assistant_kb, event, correction or summary.',
        'content', 'The statement, self-contained, in the language of its source.',
        'actor', 'Who it is about.',
        'slot', 'What it says something about, when a newer value replaces an older one; else null.',
        'slot_value', 'The value it gives the slot.',
        'keywords', 'Keywords of the statement.',
        'attributes', 'Further particulars.',
        'note', 'What later knowledge added to its understanding.',
        'tags', 'Tags of the note.',
        'importance', 'How important it is, 0 to 1; important knowledge is not forgotten by decay.',
        'weight', 'Weight right now, computed as it is read: it decays since the last reinforcement, and is forgotten below the threshold.',
        'strength_days', 'How slowly it decays, in days; grows when it is used.',
        'last_reinforced_at', 'When it was last used or said again.',
        'forget_at', 'When its weight falls below the threshold if nothing happens; null when it is pinned or important.',
        'pinned_at', 'Since when it is kept by decision, or null.',
        'event_at', 'When what it tells of happens or happened.',
        'event_precision', 'How exactly that is known: minute, day, week, month or year.',
        'turn_at', 'When it was said.',
        'valid_from', 'From when it is true.',
        'recorded_at', 'When it became known here.',
        'extracted_by', 'Model and prompt version that found it.',
        'source_turn_ids', 'The turns it came from, in the order they were said.');
    spot record;
begin
    for spot in
        select c.relname, a.attname, shared ->> a.attname as sentence
          from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0
         where c.relnamespace = 'memory_v1'::regnamespace and shared ? a.attname
           and pg_catalog.col_description(c.oid, a.attnum) is null
    loop
        execute format('comment on column memory_v1.%I.%I is %L', spot.relname, spot.attname, spot.sentence);
    end loop;
end $$;
