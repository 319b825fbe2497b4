create extension if not exists vector;

-- Which model made a vector. Shared by all tenants, holds no text of theirs.
create table memoryos.vector_space (
    space_id    integer generated always as identity primary key,
    model       text not null,
    revision    text not null,
    dimensions  integer not null,
    token_cap   integer not null,
    unique (model, revision, dimensions, token_cap)
);

create table memoryos.embedding (
    tenant_id     uuid not null,
    space_id      integer not null references memoryos.vector_space,
    owner_kind    text not null check (owner_kind in ('turn', 'page', 'segment', 'knowledge')),
    owner_id      uuid not null,
    scope_id      uuid not null,
    vec           public.halfvec not null,
    input_sha256  bytea not null,
    tokens        integer not null,
    truncated     boolean not null default false,
    primary key (tenant_id, space_id, owner_kind, owner_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index embedding_by_scope on memoryos.embedding (tenant_id, scope_id, space_id, owner_kind);

create table memoryos.posting (
    tenant_id   uuid not null,
    scope_id    uuid not null,
    term        text not null,
    owner_kind  text not null check (owner_kind in ('turn', 'page', 'knowledge')),
    owner_id    uuid not null,
    tf          integer not null check (tf > 0),
    primary key (tenant_id, scope_id, term, owner_kind, owner_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index posting_by_owner on memoryos.posting (tenant_id, owner_kind, owner_id);

create table memoryos.posting_length (
    tenant_id   uuid not null,
    scope_id    uuid not null,
    owner_kind  text not null,
    owner_id    uuid not null,
    terms       integer not null,
    primary key (tenant_id, scope_id, owner_kind, owner_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index posting_length_by_owner on memoryos.posting_length (tenant_id, owner_kind, owner_id);
comment on table memoryos.posting_length is 'How many terms an indexed owner has: the document length of BM25.';
