-- Rows indexed before marks were read have none, and nothing says so. From here on a row tells by which rules it was
-- read; those that are there already may have been read by none, and `memoryos doctor --repair` reads them again.
alter table memoryos.posting_length add column marks_version smallint not null default 0;
alter table memoryos.posting_length alter column marks_version set default 1;
comment on column memoryos.posting_length.marks_version is 'By which rules asks_only, ends_asking and tells_time were read; 0 is by none.';
