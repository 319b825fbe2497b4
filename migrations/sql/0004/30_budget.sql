alter table memoryos.tenant add column tokens_per_day bigint check (tokens_per_day > 0);
comment on column memoryos.tenant.tokens_per_day is 'Tokens of language models a day (UTC) at most; null is without a limit.';

create table memoryos.budget (
    tenant_id  uuid not null references memoryos.tenant on delete cascade,
    day        date not null,
    spent      bigint not null default 0,
    primary key (tenant_id, day)
);
comment on table memoryos.budget is 'Tokens a tenant has spent, by day (UTC).';

-- A reservation that was never settled runs out by itself: its worker is gone.
create table memoryos.reservation (
    tenant_id       uuid not null,
    reservation_id  uuid not null,
    day             date not null,
    tokens          bigint not null,
    expires_at      timestamptz not null,
    primary key (tenant_id, reservation_id),
    foreign key (tenant_id, day) references memoryos.budget on delete cascade
);
comment on table memoryos.reservation is 'Tokens set aside for calls that are under way.';

create table memoryos.provider_state (
    provider      text primary key,
    phase         text not null default 'closed' check (phase in ('closed', 'open', 'half_open')),
    window_at     timestamptz not null default clock_timestamp(),
    calls         integer not null default 0,
    failures      integer not null default 0,
    trips         integer not null default 0,
    retry_at      timestamptz,
    reason        text,
    changed_at    timestamptz not null default clock_timestamp()
);
comment on table memoryos.provider_state is 'The breaker before each provider of a language model.';
