-- What ranking asks of every candidate lies in the index rows themselves: a search of a thousand turns reads one small
-- table by ranges instead of looking up every turn. The length of an owner stands beside each of its postings.
alter table memoryos.posting no force row level security;
alter table memoryos.posting_length no force row level security;
alter table memoryos.turn no force row level security;

alter table memoryos.posting add column terms integer;
update memoryos.posting p set terms = l.terms
  from memoryos.posting_length l
 where l.tenant_id = p.tenant_id and l.scope_id = p.scope_id and l.owner_kind = p.owner_kind and l.owner_id = p.owner_id;
delete from memoryos.posting where terms is null;
alter table memoryos.posting alter column terms set not null;
comment on column memoryos.posting.terms is 'How many terms the owner has in all, as posting_length says.';

alter table memoryos.posting_length
    add column conversation_id  uuid,
    add column seq              bigint,
    add column at               timestamptz,
    add column speaker          text,
    add column asks_only        boolean not null default false,
    add column ends_asking      boolean not null default false,
    add column tells_time       boolean not null default false;
update memoryos.posting_length l
   set conversation_id = t.conversation_id, seq = t.seq, at = t.occurred_at, speaker = t.speaker
  from memoryos.turn t
 where t.tenant_id = l.tenant_id and t.turn_id = l.owner_id and l.owner_kind = 'turn';
create index posting_length_by_place on memoryos.posting_length (tenant_id, conversation_id, seq)
    where owner_kind = 'turn';
comment on table memoryos.posting_length is
    'What ranking asks of an indexed owner: its terms (the document length of BM25), and of a turn where it stands.';
comment on column memoryos.posting_length.asks_only is 'It asks and tells nothing.';
comment on column memoryos.posting_length.ends_asking is 'Whatever it tells before, it ends in a question.';
comment on column memoryos.posting_length.tells_time is 'It names a time, a date or a duration.';

alter table memoryos.posting force row level security;
alter table memoryos.posting_length force row level security;
alter table memoryos.turn force row level security;
