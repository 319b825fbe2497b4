-- What a scope acts under: `preset` and `preset_version` name it, the row of memoryos.policy has it in full.
alter table memoryos.scope
    add column idle_flush_minutes double precision,
    add column heat_ticks bigint not null default 0,
    add column forecast_of uuid;
comment on column memoryos.scope.idle_flush_minutes is 'The idle time of its policy, for the sweep that reads no policies; null for the default.';
comment on column memoryos.scope.heat_ticks is 'Retrievals so far: the clock of heat under ema_tick.';
comment on column memoryos.scope.forecast_of is 'The policy under which forget_at and cools_at were worked out; null for the default.';
create index scope_idle on memoryos.scope (idle_flush_minutes) where idle_flush_minutes is not null;
grant select (idle_flush_minutes) on memoryos.scope to memoryos_ledger;

alter table memoryos.page
    add column heat_tick bigint not null default 0,
    add column cools_at_tick bigint,
    add column visits integer not null default 0,
    drop constraint page_distill_cause_check,
    add constraint page_distill_cause_check check (distill_cause in ('cooled', 'heated', 'sealed', 'evicted'));
comment on column memoryos.page.heat_tick is 'Tick at which heat had its value, under ema_tick.';
comment on column memoryos.page.cools_at_tick is 'Tick at which heat falls below the threshold if nobody reads the page, under ema_tick.';
comment on column memoryos.page.visits is 'Accesses that counted, ever: what lfu evicts by.';
create index page_cools_at_tick on memoryos.page (tenant_id, scope_id, cools_at_tick) where cools_at_tick is not null;

create table memoryos.rollup (
    tenant_id     uuid not null,
    scope_id      uuid not null,
    period        text not null,
    summary       text not null,
    keywords      text[] not null default '{}',
    lang          text not null,
    page_count    integer not null,
    page_ids      uuid[] not null,
    model         text not null,
    refreshed_at  timestamptz not null default memoryos.now(),
    version       integer not null default 1,
    primary key (tenant_id, scope_id, period),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
comment on table memoryos.rollup is 'Summaries of days and of the whole, written anew whenever a page of theirs comes or changes.';

create function memoryos.estimate_tokens(content text) returns integer language sql immutable
return ceil((octet_length(content) - char_length(content)) / 2.0)
     + ceil((char_length(content) - (octet_length(content) - char_length(content)) / 2.0) / 4.0);
comment on function memoryos.estimate_tokens is
    'About how many tokens a text has: one a character of three bytes (Han, kana, Hangul), one per four others.';
