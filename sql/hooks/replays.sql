-- name: saveReplay
-- Records that an event was sent, and keeps the newest 200 records of the event. Empty when the event was removed.
with event as (
  select id from hooks.events where id = :event for key share
), surplus as (
  delete from hooks.attempts
   where event_id = :event
     and id <= (select id from hooks.attempts where event_id = :event order by id desc offset 199 limit 1)
)
insert into hooks.attempts (event_id, kind, target, outcome, status, ms, detail, answer, at)
select id, :kind, :target, :outcome, :status, :ms, :detail, :answer, :at
  from event
returning id;

-- name: listReplays
-- The replays of an event, newest first.
select id, kind, target, outcome, status, ms, detail, answer, at
  from hooks.attempts
 where event_id = :event
 order by id desc
 limit :limit;
