create table memoryos.scope (
    tenant_id        uuid not null references memoryos.tenant on delete cascade,
    scope_id         uuid not null,
    user_id          text not null,
    agent_id         text not null,
    preset           text not null default 'default',
    preset_version   integer not null default 1,
    extract_ordinal  bigint not null default 0,
    merged_ordinal   bigint not null default 0,
    lock_version     bigint not null default 0,
    erased_at        timestamptz,
    created_at       timestamptz not null default memoryos.now(),
    primary key (tenant_id, scope_id),
    unique (tenant_id, user_id, agent_id)
);
comment on column memoryos.scope.extract_ordinal is 'Pages handed to distillation so far; the next one gets this plus one.';
comment on column memoryos.scope.merged_ordinal is 'Distilled pages merged so far, in ordinal order without gaps.';

create table memoryos.conversation (
    tenant_id         uuid not null,
    conversation_id   uuid not null,
    scope_id          uuid not null,
    external_id       text not null,
    next_seq          bigint not null default 1,
    sealed_through    bigint not null default 0,
    indexed_through   bigint not null default 0,
    assigned_through  bigint not null default 0,
    last_activity_at  timestamptz not null default memoryos.now(),
    last_turn_at      timestamptz,
    tail_turn_at      timestamptz,
    before_turn_at    timestamptz,
    closed_at         timestamptz,
    created_at        timestamptz not null default memoryos.now(),
    primary key (tenant_id, conversation_id),
    unique (tenant_id, scope_id, external_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade,
    check (sealed_through < next_seq and indexed_through <= sealed_through)
) with (fillfactor = 70);
comment on column memoryos.conversation.tail_turn_at is 'Turn time of the newest turn by sequence.';
comment on column memoryos.conversation.before_turn_at is 'What tail_turn_at was before the last request: a silence since then ends a page.';
create index conversation_open_tail on memoryos.conversation (last_activity_at)
    where sealed_through < next_seq - 1;
create index conversation_unindexed on memoryos.conversation (tenant_id, scope_id)
    where indexed_through < next_seq - 1;

create table memoryos.turn (
    tenant_id        uuid not null,
    conversation_id  uuid not null,
    seq              bigint not null,
    turn_id          uuid not null,
    scope_id         uuid not null,
    client_turn_id   text not null,
    body_sha256      bytea not null,
    role             text not null check (role in ('user', 'assistant', 'system', 'tool')),
    speaker          text not null,
    content          text not null,
    parts            jsonb,
    metadata         jsonb not null default '{}',
    kind             text not null default 'normal' check (kind in ('normal', 'system', 'recalled')),
    lang             text not null,
    occurred_at      timestamptz not null,
    utc_offset_minutes smallint not null,
    recorded_at      timestamptz not null default memoryos.now(),
    position         xid8 not null default pg_current_xact_id(),
    primary key (tenant_id, conversation_id, seq),
    unique (tenant_id, conversation_id, client_turn_id),
    unique (tenant_id, turn_id),
    foreign key (tenant_id, conversation_id) references memoryos.conversation on delete cascade
);
comment on column memoryos.turn.position is 'Where the event feed stood when the turn was recorded; every receipt of the turn repeats it.';
create index turn_by_scope on memoryos.turn (tenant_id, scope_id, occurred_at, seq);
create index turn_by_speaker on memoryos.turn (tenant_id, scope_id, speaker, role);

create table memoryos.page (
    tenant_id        uuid not null,
    page_id          uuid not null,
    scope_id         uuid not null,
    conversation_id  uuid not null,
    first_seq        bigint not null,
    last_seq         bigint not null check (last_seq >= first_seq),
    first_turn_at    timestamptz not null,
    last_turn_at     timestamptz not null,
    tier             text not null default 'warm' check (tier in ('warm', 'archived')),
    lang             text not null,
    summary          text,
    keywords         text[] not null default '{}',
    topics           text[] not null default '{}',
    continues        boolean,
    prev_page_id     uuid,
    chain_id         uuid,
    meta_summary     text,
    summary_model    text,
    summarized_at    timestamptz,
    indexed_at       timestamptz,
    assigned_at      timestamptz,
    heat             double precision not null default 1.0 check (heat >= 0 and heat <= 1),
    heat_at          timestamptz not null default memoryos.now(),
    cools_at         timestamptz,
    distill_cause    text check (distill_cause in ('cooled', 'heated', 'sealed')),
    extract_ordinal  bigint,
    extracted_by     text,
    extracted_at     timestamptz,
    knowledge_count  integer,
    pinned_at        timestamptz,
    archived_at      timestamptz,
    sealed_at        timestamptz not null default memoryos.now(),
    version          bigint not null default 0,
    primary key (tenant_id, page_id),
    unique (tenant_id, conversation_id, first_seq),
    unique (tenant_id, scope_id, extract_ordinal),
    foreign key (tenant_id, conversation_id) references memoryos.conversation on delete cascade,
    check (tier <> 'archived' or extracted_at is not null)
) with (fillfactor = 80);
create index page_by_scope on memoryos.page (tenant_id, scope_id, last_turn_at);
create index page_not_handed on memoryos.page (tenant_id, scope_id) where extract_ordinal is null;
create index page_pinned on memoryos.page (tenant_id, scope_id) where pinned_at is not null;
create index page_cools_at on memoryos.page (cools_at) where cools_at is not null;
comment on column memoryos.page.assigned_at is 'When the page got its segment and became warm; null before.';
comment on column memoryos.page.cools_at is 'When heat falls below the cooling threshold if nobody reads the page; null once that has been handled.';
comment on column memoryos.page.knowledge_count is 'Candidates the distillation found: 0 is an explicit nothing, null is not distilled yet.';

create table memoryos.segment (
    tenant_id       uuid not null,
    segment_id      uuid not null,
    scope_id        uuid not null,
    theme           text not null,
    summary         text not null,
    keywords        text[] not null default '{}',
    n_visit         integer not null default 0,
    l_interaction   integer not null default 0,
    last_visit_at   timestamptz not null default memoryos.now(),
    heat_linear     double precision not null default 0,
    page_count      integer not null default 0,
    created_at      timestamptz not null default memoryos.now(),
    version         bigint not null default 0,
    primary key (tenant_id, segment_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index segment_by_scope on memoryos.segment (tenant_id, scope_id);

create table memoryos.page_segment (
    tenant_id    uuid not null,
    page_id      uuid not null,
    segment_id   uuid not null,
    theme_rank   smallint not null default 0,
    assigned_at  timestamptz not null default memoryos.now(),
    primary key (tenant_id, page_id, segment_id),
    foreign key (tenant_id, page_id) references memoryos.page on delete cascade,
    foreign key (tenant_id, segment_id) references memoryos.segment on delete cascade
);
create index page_segment_by_segment on memoryos.page_segment (tenant_id, segment_id);
