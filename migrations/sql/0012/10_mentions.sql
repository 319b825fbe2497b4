-- Which statement names whom: a name is gone with the last statement that says it.
create table memoryos.mention (
    tenant_id     uuid not null,
    knowledge_id  uuid not null,
    entity_id     uuid not null,
    primary key (tenant_id, knowledge_id, entity_id),
    foreign key (tenant_id, knowledge_id) references memoryos.knowledge on delete cascade,
    foreign key (tenant_id, entity_id) references memoryos.entity on delete cascade
);
create index mention_by_entity on memoryos.mention (tenant_id, entity_id);
comment on table memoryos.mention is 'Which statement names which entity; the ends of its relations are named by it too.';

insert into memoryos.mention (tenant_id, knowledge_id, entity_id)
select tenant_id, knowledge_id, source_id from memoryos.relation
union
select tenant_id, knowledge_id, target_id from memoryos.relation;

alter table memoryos.mention enable row level security;
alter table memoryos.mention force row level security;
create policy own_tenant on memoryos.mention using (tenant_id = (select memoryos.current_tenant()))
    with check (tenant_id = (select memoryos.current_tenant()));
grant select, insert, update, delete on memoryos.mention to memoryos_app;

create or replace view memory_v1.entities with (security_invoker = true) as
select e.tenant_id, s.user_id, s.agent_id, e.entity_id, e.name, e.type, e.mentions, e.created_at, e.scope_id
  from memoryos.entity e
  join memoryos.scope s on s.tenant_id = e.tenant_id and s.scope_id = e.scope_id
 where exists (select from memoryos.mention m
                 join memoryos.knowledge k on k.tenant_id = m.tenant_id and k.knowledge_id = m.knowledge_id
                where m.tenant_id = e.tenant_id and m.entity_id = e.entity_id and k.status <> 'forgotten');
comment on view memory_v1.entities is
    'Who and what statements name: one row a name and type, so two people of one name are two as long as their types differ. A name is gone with the last statement that says it.';
comment on column memory_v1.entities.mentions is 'How often a statement has named it.';
grant select on memoryos.mention to memoryos_reader;
