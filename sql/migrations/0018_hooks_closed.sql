-- Its exception block is a subtransaction, which PostgreSQL refuses while workers run in parallel.
alter function hooks.payload_json(bytea) parallel unsafe;

create function hooks.first_event_type(provider_of text, hash_of bytea, given text) returns text
language plpgsql volatile
-- Where one body is common, "=" has the planner walk the primary key, which reads all events for any other body.
-- Only the index of signed bodies gives this order without a sort.
set enable_sort = off
as $$
declare
  first record;
begin
  select e.event_type
    into first
    from hooks.events e
   where e.trust_mode = 'signed'
     and e.body_hash between hash_of and hash_of
     and e.provider = provider_of
   order by e.body_hash, e.id
   limit 1;
  return case when found then first.event_type else given end;
end
$$;
comment on function hooks.first_event_type is
  'The event type of the first signed event of a provider with this body, or the given one when there is none. Volatile: it sees what was committed before the caller got the lock.';

create table hooks.rejection_writers (
  writer uuid           primary key,
  batch  bigint         not null,
  at     timestamptz(3) not null
);
comment on table hooks.rejection_writers is 'The last batch of rejections of each process: one whose answer got lost is sent again, and counts once.';
