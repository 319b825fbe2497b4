-- What operators and the relay know about the whole system. No tenant is in it, and nothing that was said.
create table memoryos.paused_kind (
    kind       text primary key,
    paused_at  timestamptz not null default clock_timestamp(),
    paused_by  text not null check (paused_by in ('operator', 'alarm')),
    reason     text not null
);
comment on table memoryos.paused_kind is 'The kill switch: while a kind is listed, nobody publishes or claims its work.';

create table memoryos.alarm (
    name      text not null,
    subject   text not null,
    since     timestamptz not null default clock_timestamp(),
    seen_at   timestamptz not null default clock_timestamp(),
    sentence  text not null,
    primary key (name, subject)
);
comment on table memoryos.alarm is 'What is wrong right now, as the relay sees it; a row goes when its cause has gone.';

create table memoryos.counter (
    name   text primary key,
    total  bigint not null default 0
);
comment on table memoryos.counter is 'Numbers that only grow, for /metrics: fenced, republished, epoch_lost, leases_reaped.';

create table memoryos.doctor_run (
    slot         timestamptz primary key,
    started_at   timestamptz not null default clock_timestamp(),
    finished_at  timestamptz,
    tenants      integer not null default 0,
    unchecked    integer not null default 0,
    violations   jsonb not null default '{}'
);
comment on table memoryos.doctor_run is 'Scheduled runs of the invariants: how many violations of each, over all tenants.';

-- What became of work, a minute at a time: enough to tell a broken kind from a broken tenant.
create table memoryos.tally (
    tenant_id  uuid not null references memoryos.tenant on delete cascade,
    kind       text not null,
    minute     timestamptz not null,
    outcome    text not null,
    count      bigint not null,
    primary key (tenant_id, kind, minute, outcome)
);
create index tally_by_minute on memoryos.tally (minute);
comment on table memoryos.tally is 'Executions by minute and outcome: done, or the class of the error. Kept for an hour.';

-- Retention finds what is old without reading what is not.
create index access_event_applied on memoryos.access_event (applied_at) where applied_at is not null;
create index event_by_age on memoryos.event (recorded_at);
