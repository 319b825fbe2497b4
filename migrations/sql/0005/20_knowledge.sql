alter table memoryos.knowledge add column expires_at timestamptz;
comment on column memoryos.knowledge.expires_at is 'When it ends however much it is used, apart from decay; null for never. A pin keeps it.';
create index knowledge_expires_at on memoryos.knowledge (expires_at) where status = 'active' and expires_at is not null;
grant select (expires_at) on memoryos.knowledge to memoryos_ledger;

alter table memoryos.knowledge_source add column added_at timestamptz not null default memoryos.now();

-- The changeable part of a statement as it was before each change; content never changes, so it is not repeated.
create table memoryos.knowledge_past (
    tenant_id           uuid not null,
    knowledge_id        uuid not null,
    past_id             bigint generated always as identity,
    scope_id            uuid not null,
    until               timestamptz not null default memoryos.now(),
    slot                text,
    importance          double precision not null,
    strength_days       double precision not null,
    last_reinforced_at  timestamptz not null,
    forget_at           timestamptz,
    pinned_at           timestamptz,
    valid_from          timestamptz not null,
    valid_to            timestamptz,
    superseded_by       uuid,
    close_reason        text,
    status              text not null,
    retired_at          timestamptz,
    forgotten_at        timestamptz,
    purge_at            timestamptz,
    primary key (tenant_id, knowledge_id, past_id),
    foreign key (tenant_id, knowledge_id) references memoryos.knowledge on delete cascade
);
comment on table memoryos.knowledge_past is 'What as-of reads are made of; purged and erased together with the statement.';

create function memoryos.keep_knowledge_past() returns trigger
language plpgsql set search_path = '' as $$
begin
    insert into memoryos.knowledge_past (
        tenant_id, knowledge_id, scope_id, slot, importance, strength_days, last_reinforced_at, forget_at, pinned_at,
        valid_from, valid_to, superseded_by, close_reason, status, retired_at, forgotten_at, purge_at)
    values (
        old.tenant_id, old.knowledge_id, old.scope_id, old.slot, old.importance, old.strength_days,
        old.last_reinforced_at, old.forget_at, old.pinned_at, old.valid_from, old.valid_to, old.superseded_by,
        old.close_reason, old.status, old.retired_at, old.forgotten_at, old.purge_at);
    return null;
end $$;
create trigger keep_knowledge_past after update on memoryos.knowledge
    for each row when (old.* is distinct from new.*) execute function memoryos.keep_knowledge_past();
