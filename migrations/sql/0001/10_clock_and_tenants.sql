create schema memoryos;
comment on schema memoryos is 'Tables of the pipeline; readers use schema memory_v1.';

-- One clock for heat and forgetting. Only the owner role may set it (simulation, tests, ingest --as-lived).
create table memoryos.clock (
    only_row   boolean primary key default true check (only_row),
    frozen_at  timestamptz
);
insert into memoryos.clock default values;

create function memoryos.now() returns timestamptz
language sql stable set search_path = '' as
$$ select coalesce((select frozen_at from memoryos.clock), pg_catalog.clock_timestamp()) $$;
comment on function memoryos.now() is 'Recorded time: the wall clock, or the moment the owner froze it at.';

-- The tenant of the running transaction; a reset setting is the empty string, which must match nothing.
create function memoryos.current_tenant() returns uuid
language sql stable set search_path = '' as
$$ select nullif(pg_catalog.current_setting('app.tenant', true), '')::pg_catalog.uuid $$;

create table memoryos.tenant (
    tenant_id   uuid primary key,
    name        text not null unique,
    on_hold     boolean not null default false,
    created_at  timestamptz not null default clock_timestamp()
);

create table memoryos.api_key (
    tenant_id     uuid not null references memoryos.tenant on delete cascade,
    key_id        uuid not null,
    prefix        text not null,
    key_sha256    bytea not null unique,
    label         text not null default '',
    scopes        text[] not null default '{ingest,read,erase,admin}',
    created_at    timestamptz not null default clock_timestamp(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    primary key (tenant_id, key_id)
);

create table memoryos.reader_grant (
    tenant_id   uuid not null references memoryos.tenant on delete cascade,
    login_role  name not null unique,
    created_at  timestamptz not null default clock_timestamp(),
    primary key (tenant_id, login_role)
);

create table memoryos.policy (
    tenant_id      uuid not null references memoryos.tenant on delete cascade,
    policy_id      uuid not null,
    user_id        text,
    preset         text not null,
    version        integer not null,
    settings       jsonb not null default '{}',
    created_at     timestamptz not null default clock_timestamp(),
    primary key (tenant_id, policy_id),
    unique nulls not distinct (tenant_id, user_id, version)
);
