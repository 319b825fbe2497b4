-- How much is asked of a provider, by everybody together. No tenant is in it. The provider '*' is all of them.
create table memoryos.provider_limit (
    provider          text primary key,
    calls_per_minute  integer check (calls_per_minute > 0),
    calls_per_hour    integer check (calls_per_hour > 0),
    calls_at_once     integer check (calls_at_once > 0),
    minute_at         timestamptz not null default clock_timestamp(),
    minute_calls      integer not null default 0,
    hour_at           timestamptz not null default clock_timestamp(),
    hour_calls        integer not null default 0
);
comment on table memoryos.provider_limit is 'Calls that may be made of a provider, and those made in the running minute and hour; null is without a limit.';

-- A call that was never ended runs out by itself: its process is gone.
create table memoryos.provider_call (
    provider    text not null references memoryos.provider_limit on delete cascade,
    call_id     uuid not null,
    expires_at  timestamptz not null,
    primary key (provider, call_id)
);
comment on table memoryos.provider_call is 'Calls under way of providers that bound them.';

grant select, update on memoryos.provider_limit to memoryos_app;
grant select, insert, delete on memoryos.provider_call to memoryos_app;
grant select on memoryos.provider_limit, memoryos.provider_call to memoryos_ledger;
