-- What was decided, and the graph. Forgotten statements can be read in knowledge_history alone, so no view repeats them.
create view memory_v1.verdicts with (security_invoker = true) as
select v.tenant_id, s.user_id, s.agent_id, v.verdict_id, v.decision, v.old_knowledge_id,
       case when o.status is distinct from 'forgotten' then v.old_content end as old_content,
       v.new_knowledge_id,
       case when coalesce(n.status, o.status) is distinct from 'forgotten' then v.new_content end as new_content,
       v.evidence ->> 'reason' as reason, v.evidence - 'undo' - 'reason' - 'undoes' as evidence, v.decided_by,
       v.decided_at, v.undone_at, cast(v.evidence ->> 'undoes' as uuid) as undoes, v.scope_id
  from memoryos.verdict v
  join memoryos.scope s on s.tenant_id = v.tenant_id and s.scope_id = v.scope_id
  left join memoryos.knowledge o on o.tenant_id = v.tenant_id and o.knowledge_id = v.old_knowledge_id
  left join memoryos.knowledge n on n.tenant_id = v.tenant_id and n.knowledge_id = v.new_knowledge_id;
comment on view memory_v1.verdicts is
    'What was decided where a statement met what was known: both statements, the decision, who decided and why.';
comment on column memory_v1.verdicts.verdict_id is 'Id of the decision; `memoryos conflicts undo` takes it.';
comment on column memory_v1.verdicts.decision is
    'ADD, UPDATE (the new replaced the old), CLOSE (the old ended), NOOP (already known) or COEXIST (both stand).';
comment on column memory_v1.verdicts.old_knowledge_id is 'What was known, or null.';
comment on column memory_v1.verdicts.old_content is 'What it said; null without one and once it is forgotten.';
comment on column memory_v1.verdicts.new_knowledge_id is 'What the new statement became, or null when it added nothing.';
comment on column memory_v1.verdicts.new_content is 'The new statement; null once it is forgotten.';
comment on column memory_v1.verdicts.reason is 'Why, in the words of whoever decided.';
comment on column memory_v1.verdicts.evidence is 'The page it came from, and how near its neighbours were, by id.';
comment on column memory_v1.verdicts.decided_by is 'Model or rules that decided.';
comment on column memory_v1.verdicts.decided_at is 'When it was decided.';
comment on column memory_v1.verdicts.undone_at is 'When it was taken back, or null.';
comment on column memory_v1.verdicts.undoes is 'The decision this one took back, or null.';

create view memory_v1.relations with (security_invoker = true) as
select r.tenant_id, s.user_id, s.agent_id, r.relation_id, r.source_id, a.name as source, a.type as source_type,
       r.name as relation, r.target_id, b.name as target, b.type as target_type, r.valid_from, r.valid_to,
       r.knowledge_id, k.content, r.scope_id
  from memoryos.relation r
  join memoryos.scope s on s.tenant_id = r.tenant_id and s.scope_id = r.scope_id
  join memoryos.entity a on a.tenant_id = r.tenant_id and a.entity_id = r.source_id
  join memoryos.entity b on b.tenant_id = r.tenant_id and b.entity_id = r.target_id
  join memoryos.knowledge k on k.tenant_id = r.tenant_id and k.knowledge_id = r.knowledge_id
 where k.status <> 'forgotten';
comment on view memory_v1.relations is
    'Who and what is related how, and since when: one row a relation and statement. Only the policy graph = triples makes any.';
comment on column memory_v1.relations.relation_id is 'Id of the relation.';
comment on column memory_v1.relations.source_id is 'Entity it starts at.';
comment on column memory_v1.relations.source is 'Name of that entity.';
comment on column memory_v1.relations.source_type is 'Type of that entity.';
comment on column memory_v1.relations.relation is 'What they have to do with each other: lives_in, works_for, knows and so on.';
comment on column memory_v1.relations.target_id is 'Entity it points to.';
comment on column memory_v1.relations.target is 'Name of that entity.';
comment on column memory_v1.relations.target_type is 'Type of that entity.';
comment on column memory_v1.relations.valid_to is 'Until when it was true, or null while it is.';
comment on column memory_v1.relations.knowledge_id is 'The statement it stands on; it ends with it.';

create view memory_v1.entities with (security_invoker = true) as
select e.tenant_id, s.user_id, s.agent_id, e.entity_id, e.name, e.type, e.mentions, e.created_at, e.scope_id
  from memoryos.entity e
  join memoryos.scope s on s.tenant_id = e.tenant_id and s.scope_id = e.scope_id;
comment on view memory_v1.entities is
    'Who and what is named: one row a name and type, so two people of one name are two as long as their types differ. A name stays until the user is erased.';
comment on column memory_v1.entities.entity_id is 'Id of the entity.';
comment on column memory_v1.entities.name is 'The name as it was first written.';
comment on column memory_v1.entities.type is 'What it is: a place, a thing, or what a person is to the speaker.';
comment on column memory_v1.entities.mentions is 'How often statements and relations have named it.';
comment on column memory_v1.entities.created_at is 'When it was first named.';

do $$
declare
    shared constant jsonb := jsonb_build_object(
        'tenant_id', 'Whose memory it is; every row you can see has yours.',
        'user_id', 'The user, as the sender names them.',
        'agent_id', 'The agent, as the sender names it.',
        'scope_id', 'The memory of this user with this agent, by its id inside the pipeline.',
        'content', 'The statement, self-contained, in the language of its source.',
        'valid_from', 'From when it is true.');
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

grant select on memory_v1.verdicts, memory_v1.relations, memory_v1.entities to memoryos_app, memoryos_reader;
-- A reader needs exactly the columns these views are built from.
grant select (tenant_id, scope_id, verdict_id, decision, new_knowledge_id, old_knowledge_id, new_content, old_content,
              evidence, decided_by, decided_at, undone_at) on memoryos.verdict to memoryos_reader;
grant select (tenant_id, scope_id, relation_id, source_id, name, target_id, knowledge_id, valid_from, valid_to)
    on memoryos.relation to memoryos_reader;
grant select (tenant_id, scope_id, entity_id, name, type, mentions, created_at) on memoryos.entity to memoryos_reader;
