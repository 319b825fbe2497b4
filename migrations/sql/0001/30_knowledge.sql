create table memoryos.candidate (
    tenant_id        uuid not null,
    page_id          uuid not null,
    ordinal          integer not null,
    scope_id         uuid not null,
    extract_ordinal  bigint not null,
    payload          jsonb not null,
    primary key (tenant_id, page_id, ordinal),
    foreign key (tenant_id, page_id) references memoryos.page on delete cascade
);
create index candidate_by_ordinal on memoryos.candidate (tenant_id, scope_id, extract_ordinal);
comment on table memoryos.candidate is 'What distillation found on a page and merging has not yet decided on.';

create table memoryos.knowledge (
    tenant_id           uuid not null,
    knowledge_id        uuid not null,
    scope_id            uuid not null,
    lineage_id          uuid not null,
    version             integer not null default 1,
    kind                text not null check (kind in ('fact', 'note', 'user_kb', 'assistant_kb', 'event', 'correction', 'summary')),
    content             text not null,
    content_sha256      bytea not null,
    lang                text not null,
    actor               text not null,
    slot                text,
    slot_value          text,
    keywords            text[] not null default '{}',
    attributes          jsonb not null default '{}',
    importance          double precision not null check (importance between 0 and 1),
    w0                  double precision not null default 1.0 check (w0 between 0 and 1),
    strength_days       double precision not null check (strength_days > 0),
    last_reinforced_at  timestamptz not null default memoryos.now(),
    forget_at           timestamptz,
    pinned_at           timestamptz,
    event_at            timestamptz,
    event_precision     text check (event_precision in ('minute', 'day', 'week', 'month', 'year')),
    turn_at             timestamptz not null,
    valid_from          timestamptz not null,
    valid_to            timestamptz,
    superseded_by       uuid,
    close_reason        text,
    status              text not null default 'active' check (status in ('active', 'superseded', 'closed', 'forgotten')),
    recorded_at         timestamptz not null default memoryos.now(),
    retired_at          timestamptz,
    forgotten_at        timestamptz,
    purge_at            timestamptz,
    extracted_by        text not null,
    work_id             bigint,
    primary key (tenant_id, knowledge_id),
    unique (tenant_id, lineage_id, version),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade,
    check ((status = 'active') = (retired_at is null and forgotten_at is null)),
    check (status <> 'superseded' or superseded_by is not null),
    check (status <> 'forgotten' or forgotten_at is not null)
) with (fillfactor = 80);
create unique index knowledge_one_live_copy on memoryos.knowledge (tenant_id, scope_id, kind, content_sha256)
    where status = 'active';
create index knowledge_by_scope on memoryos.knowledge (tenant_id, scope_id, status, turn_at);
create index knowledge_by_slot on memoryos.knowledge (tenant_id, scope_id, slot) where status = 'active' and slot is not null;
create index knowledge_forget_at on memoryos.knowledge (forget_at) where status = 'active' and forget_at is not null;
create index knowledge_purge_at on memoryos.knowledge (purge_at) where purge_at is not null;
comment on column memoryos.knowledge.forget_at is 'last_reinforced_at + strength * ln(w0/theta); null when pinned or held by an importance floor.';

create table memoryos.knowledge_source (
    tenant_id        uuid not null,
    knowledge_id     uuid not null,
    conversation_id  uuid not null,
    seq              bigint not null,
    page_id          uuid not null,
    primary key (tenant_id, knowledge_id, conversation_id, seq),
    foreign key (tenant_id, knowledge_id) references memoryos.knowledge on delete cascade,
    foreign key (tenant_id, conversation_id, seq) references memoryos.turn on delete cascade,
    foreign key (tenant_id, page_id) references memoryos.page on delete cascade
);
create index knowledge_source_by_turn on memoryos.knowledge_source (tenant_id, conversation_id, seq);
create index knowledge_source_by_page on memoryos.knowledge_source (tenant_id, page_id);

create table memoryos.turn_left (
    tenant_id        uuid not null,
    conversation_id  uuid not null,
    seq              bigint not null,
    left_at          timestamptz not null default memoryos.now(),
    primary key (tenant_id, conversation_id, seq),
    foreign key (tenant_id, conversation_id, seq) references memoryos.turn on delete cascade
);
comment on table memoryos.turn_left is
    'Turns that left recall because everything known from them was forgotten. The mark outlives the purge; restoring removes it.';

create table memoryos.knowledge_note (
    tenant_id            uuid not null,
    knowledge_id         uuid not null,
    version              integer not null,
    context              text not null default '',
    keywords             text[] not null default '{}',
    tags                 text[] not null default '{}',
    cause_knowledge_id   uuid,
    created_at           timestamptz not null default memoryos.now(),
    primary key (tenant_id, knowledge_id, version),
    foreign key (tenant_id, knowledge_id) references memoryos.knowledge on delete cascade
);

create table memoryos.knowledge_link (
    tenant_id      uuid not null,
    scope_id       uuid not null,
    source_id      uuid not null,
    target_id      uuid not null check (target_id <> source_id),
    type           text not null,
    weight         double precision not null check (weight between 0 and 1),
    reason         text not null,
    created_by     text not null,
    created_at     timestamptz not null default memoryos.now(),
    primary key (tenant_id, source_id, target_id, type),
    foreign key (tenant_id, source_id) references memoryos.knowledge on delete cascade,
    foreign key (tenant_id, target_id) references memoryos.knowledge on delete cascade
);
create index knowledge_link_by_target on memoryos.knowledge_link (tenant_id, target_id);

create table memoryos.verdict (
    tenant_id         uuid not null,
    verdict_id        uuid not null,
    scope_id          uuid not null,
    decision          text not null check (decision in ('ADD', 'UPDATE', 'CLOSE', 'NOOP', 'COEXIST')),
    new_knowledge_id  uuid,
    old_knowledge_id  uuid,
    new_content       text not null,
    old_content       text,
    evidence          jsonb not null default '{}',
    decided_by        text not null,
    decided_at        timestamptz not null default memoryos.now(),
    undone_at         timestamptz,
    primary key (tenant_id, verdict_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index verdict_by_scope on memoryos.verdict (tenant_id, scope_id, decided_at);

create table memoryos.entity (
    tenant_id   uuid not null,
    entity_id   uuid not null,
    scope_id    uuid not null,
    name        text not null,
    name_norm   text not null,
    type        text not null,
    mentions    integer not null default 1,
    created_at  timestamptz not null default memoryos.now(),
    primary key (tenant_id, entity_id),
    unique (tenant_id, scope_id, name_norm, type),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);

create table memoryos.relation (
    tenant_id        uuid not null,
    relation_id      uuid not null,
    scope_id         uuid not null,
    source_id        uuid not null,
    name             text not null,
    target_id        uuid not null,
    knowledge_id     uuid not null,
    valid_from       timestamptz not null,
    valid_to         timestamptz,
    primary key (tenant_id, relation_id),
    foreign key (tenant_id, source_id) references memoryos.entity on delete cascade,
    foreign key (tenant_id, target_id) references memoryos.entity on delete cascade,
    foreign key (tenant_id, knowledge_id) references memoryos.knowledge on delete cascade
);
create index relation_by_knowledge on memoryos.relation (tenant_id, knowledge_id);
create index relation_by_source on memoryos.relation (tenant_id, source_id);
create index relation_by_target on memoryos.relation (tenant_id, target_id);

create table memoryos.trait (
    tenant_id     uuid not null,
    scope_id      uuid not null,
    actor         text not null,
    dimension     text not null,
    level         text not null,
    confidence    double precision not null check (confidence between 0 and 1),
    knowledge_ids uuid[] not null check (cardinality(knowledge_ids) > 0),
    updated_at    timestamptz not null default memoryos.now(),
    version       integer not null default 1,
    primary key (tenant_id, scope_id, actor, dimension),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
