create table memoryos.work (
    work_id           bigint generated always as identity primary key,
    tenant_id         uuid not null,
    kind              text not null,
    subject_key       text not null,
    scope_id          uuid not null,
    generation        bigint not null default 1,
    state             text not null default 'ready' check (state in ('ready', 'leased', 'done', 'dead', 'cancelled')),
    attempts          integer not null default 0,
    max_attempts      integer not null default 5,
    deferrals         integer not null default 0,
    run_after         timestamptz not null default clock_timestamp(),
    lease_until       timestamptz,
    fence             bigint not null default 0,
    owner             text,
    enqueued_at       timestamptz,
    executions        bigint not null default 0,
    last_error_class  text,
    created_at        timestamptz not null default clock_timestamp(),
    finished_at       timestamptz,
    trace_id          text,
    unique (tenant_id, kind, subject_key),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade,
    check ((state = 'leased') = (lease_until is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
create index work_ready on memoryos.work (kind, tenant_id, run_after, work_id) where state = 'ready';
create index work_leased on memoryos.work (lease_until) where state = 'leased';
-- What the relay asks every tick must not grow with the backlog: the few rows with a doorbell out, those without a try left.
create index work_rung on memoryos.work (kind) where state = 'ready' and enqueued_at is not null;
create index work_spent on memoryos.work (work_id) where state = 'ready' and attempts >= max_attempts;
comment on table memoryos.work is 'The ledger of everything owed; done rows stay so that their unique key stops re-creation.';

create table memoryos.dead_letter (
    tenant_id    uuid not null,
    work_id      bigint not null references memoryos.work on delete cascade,
    fence        bigint not null,
    at           timestamptz not null default clock_timestamp(),
    error_class  text not null,
    error        text not null,
    replayed_at  timestamptz,
    primary key (tenant_id, work_id, fence)
);
create index dead_letter_by_work on memoryos.dead_letter (work_id);

-- Segments and merging take pages strictly in order; when a page's work is given up they must learn it, or they
-- would wait for it until something else wakes them.
create function memoryos.wake_who_waits() returns trigger
language plpgsql set search_path = '' as $$
begin
    insert into memoryos.work (tenant_id, kind, subject_key, scope_id)
    select w.tenant_id, f.waiting, w.scope_id::text, w.scope_id
      from memoryos.work w
      join (values ('summarize', 'segment'), ('embed', 'segment'), ('distill', 'merge')) f (kind, waiting)
        on f.kind = w.kind
     where w.work_id = new.work_id
    on conflict (tenant_id, kind, subject_key) do update
       set generation = work.generation + 1,
           state = case when work.state in ('done', 'cancelled') then 'ready' else work.state end,
           attempts = case when work.state in ('done', 'cancelled') then 0 else work.attempts end,
           enqueued_at = case when work.state in ('done', 'cancelled') then null else work.enqueued_at end,
           finished_at = case when work.state in ('done', 'cancelled') then null else work.finished_at end,
           run_after = case when work.state = 'ready' and work.last_error_class is not null then work.run_after
                            else least(work.run_after, excluded.run_after) end;
    return null;
end $$;
create trigger wake_who_waits after insert on memoryos.dead_letter
    for each row execute function memoryos.wake_who_waits();

create table memoryos.llm_call (
    tenant_id       uuid not null,
    request_sha256  bytea not null,
    task            text not null,
    scope_id        uuid not null,
    work_id         bigint not null,
    fence           bigint not null,
    model           text not null,
    prompt_version  text not null,
    response        jsonb not null,
    tokens_in       integer not null default 0,
    tokens_out      integer not null default 0,
    at              timestamptz not null default clock_timestamp(),
    primary key (tenant_id, task, request_sha256),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index llm_call_by_scope on memoryos.llm_call (tenant_id, scope_id);
comment on table memoryos.llm_call is
    'Journal of model answers, kept so that a crash after the answer never pays twice; a purge takes those whose work is over.';

create table memoryos.periodic_run (
    name        text not null,
    slot        timestamptz not null,
    started_at  timestamptz not null default clock_timestamp(),
    owed        integer,
    primary key (name, slot)
);

create table memoryos.heartbeat (
    process     text primary key,
    role        text not null,
    beat_at     timestamptz not null default clock_timestamp(),
    completed   bigint not null default 0
);
comment on table memoryos.heartbeat is 'Progress of every long-lived process; health is progress, not an answered ping.';

-- Audit log, change feed and as-of index. Ids and numbers only, never content.
create table memoryos.event (
    event_id         bigint generated always as identity,
    tenant_id        uuid not null,
    position         xid8 not null default pg_current_xact_id(),
    kind             text not null,
    scope_id         uuid not null,
    conversation_id  uuid,
    subject_id       uuid,
    related_id       uuid,
    seq              bigint,
    amount           double precision,
    work_id          bigint,
    at               timestamptz not null default memoryos.now(),
    recorded_at      timestamptz not null default clock_timestamp(),
    primary key (tenant_id, event_id),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index event_by_position on memoryos.event (tenant_id, position, event_id);
create index event_by_subject on memoryos.event (tenant_id, subject_id, at);
comment on column memoryos.event.position is 'Transaction of the event. A reader pages by (position, event_id) and only below pg_snapshot_xmin, so late commits are never skipped.';

create table memoryos.access_event (
    tenant_id     uuid not null,
    retrieval_id  uuid not null,
    owner_kind    text not null check (owner_kind in ('turn', 'page', 'segment', 'knowledge')),
    owner_id      uuid not null,
    scope_id      uuid not null,
    cause         text not null check (cause in ('retrieved', 'injected', 'cited')),
    at            timestamptz not null default memoryos.now(),
    applied_at    timestamptz,
    primary key (tenant_id, retrieval_id, owner_kind, owner_id, cause),
    foreign key (tenant_id, scope_id) references memoryos.scope on delete cascade
);
create index access_event_waiting on memoryos.access_event (tenant_id, scope_id) where applied_at is null;

create table memoryos.erasure_receipt (
    tenant_id     uuid not null references memoryos.tenant on delete cascade,
    receipt_id    uuid not null,
    subject_hash  bytea not null,
    requested_at  timestamptz not null default clock_timestamp(),
    done_at       timestamptz,
    rows_removed  bigint,
    primary key (tenant_id, receipt_id)
);

create table memoryos.deletion_ledger (
    tenant_id     uuid not null,
    subject_hash  bytea not null,
    at            timestamptz not null default clock_timestamp(),
    primary key (tenant_id, subject_hash)
);
