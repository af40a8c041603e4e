-- Bodies repeat (a ping each minute, say), and a hash index walks through all events with the same one at each
-- insert: at 100,000 of them that took as long as the rest of it. The first event with a body is one step here.
drop index hooks.events_by_body;
create index events_of_body on hooks.events (body_hash, id);
