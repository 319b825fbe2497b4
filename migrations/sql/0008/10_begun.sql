-- A worker claims all rows of a message at once and does them one after the other. Those it has not begun when it ends
-- did nothing, and ended nobody: they are given back as they were.
alter table memoryos.work add column begun boolean not null default true;
comment on column memoryos.work.begun is 'Whether the stage of the last claim is said to have begun.';

-- What went down with its worker is rung for in a small share of its own; every tick of the relay looks for it.
create index work_suspect on memoryos.work (kind, tenant_id, run_after, work_id)
    where state in ('ready', 'leased') and last_error_class = 'lease_expired';
