-- New events come at the end of an ascending index, where PostgreSQL inserts without a search and leaves full pages
-- behind; at the start of a descending one each page is split in halves. Reading backwards costs the same.
drop index hooks.events_by_time;
drop index hooks.events_by_provider;
drop index hooks.events_by_type;
create index events_newest on hooks.events (received_at, id);
create index events_newest_of_provider on hooks.events (provider, received_at, id);
create index events_newest_of_type on hooks.events (event_type, received_at, id) where event_type is not null;

-- Only a signed body under a fresh delivery id may be a replay: nobody asks this of others.
drop index hooks.events_of_body;
create index events_of_signed_body on hooks.events (body_hash, id) where trust_mode = 'signed';
