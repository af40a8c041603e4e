-- name: noteAttempts
-- Records that events were sent.
select hooks.note_attempts(:results, :kind, :target);

-- name: listReplays
-- The replays of an event, newest first.
select id, kind, target, outcome, status, ms, detail, answer, at
  from hooks.attempts
 where event_id = :event
 order by id desc
 limit :limit;

-- name: listRecentTargets
-- Where people sent events, newest first: the targets of the newest :among replays. A target of which a token was hidden
-- (:hidden stands in its place) can't be sent to again.
select target
  from (select id, target, outcome
          from hooks.attempts
         where kind in ('replay', 'edited')
         order by id desc
         limit :among) r
 where outcome <> 'refused'
   and strpos(target, :hidden) = 0
 group by target
 order by max(id) desc
 limit :limit;

-- name: holdToken
-- Holds the endpoint of a token until the transaction ends: its revocation waits, and then ends the new job, too. Empty
-- when the token was revoked.
select name from hooks.endpoints where token_hash = :token_hash for key share;

-- name: addReplayJob
-- A job of which nothing is planned yet. Empty when :most run already.
with added as (
  insert into hooks.destinations (name, kind, url, ordered, position, disabled_at, disabled_by)
  select :destination, 'replay', :url, false, :highest_id, now(), 'job'
   where (select count(*) from hooks.replay_jobs where ended_at is null) < :most
  returning name
)
insert into hooks.replay_jobs (destination, state, filter, highest_id, searched_from, token_hash)
select name, 'planning', :filter, :highest_id, :highest_id::bigint + 1, :token_hash
  from added
returning destination;

-- name: listReplayJobs
-- The job of this destination, or for null all that are kept, newest first. `failed`: died, or removed by retention
-- before they were sent; the first :failed_ids of those that died are named.
select d.name as destination, j.state, d.url, j.filter, j.highest_id, j.planned, d.delivered, d.died + d.gap as failed,
       (select coalesce(jsonb_agg(event_id order by event_id), '[]')
          from (select event_id from hooks.destination_deliveries
                 where destination = d.name and next_at is null
                 order by event_id limit :failed_ids) f) as failed_ids,
       d.last_at, d.last_status, d.last_detail, d.created_at as started_at, j.ended_at
  from hooks.replay_jobs j
  join hooks.destinations d on d.name = j.destination
 where (:destination::text is null or j.destination = :destination)
   and d.disabled_by is distinct from 'removal'
 order by d.created_at desc, d.name
 limit :limit;

-- name: listRunningJobs
-- The jobs that have not ended, with the number of events that were found and not sent yet.
select j.destination, j.state, j.filter, j.searched_from, j.planned - d.delivered - d.died - d.gap as left
  from hooks.replay_jobs j
  join hooks.destinations d on d.name = j.destination
 where j.ended_at is null
 order by j.destination;

-- name: planReplays
-- Writes the deliveries of a step of the search, :ids from :searched_from down to :next, which is null at the end of
-- the search: then sending begins. They are due in the order of their ids. Empty when another instance made this step,
-- or the job was cancelled. Its caller holds the destination, so that retention removes no event meanwhile.
with found as materialized (
  select e.id
    from jsonb_array_elements_text(:ids::jsonb) as g(id)
   cross join lateral (select id from hooks.events where id = g.id::bigint) e
), moved as (
  update hooks.replay_jobs
     set searched_from = coalesce(:next::bigint, 0),
         planned = planned + (select count(*) from found),
         state = case when :next is null then 'sending' else 'planning' end
   where destination = :destination
     and state = 'planning'
     and searched_from = :searched_from
  returning destination, state
), planned as (
  insert into hooks.destination_deliveries (destination, event_id, next_at)
  select m.destination, f.id, d.created_at
    from moved m
    join hooks.destinations d on d.name = m.destination
   cross join found f
), enabled as (
  update hooks.destinations d
     set disabled_at = null, disabled_by = null
    from moved m
   where d.name = m.destination
     and m.state = 'sending'
  returning d.name
), notified as (
  select pg_notify('hooks_config', '') as sent from enabled
)
select moved.state from moved left join notified on true;

-- name: endReplayJobs
-- Ends the jobs that have nothing left to send.
with over as materialized (
  select d.name
    from hooks.replay_jobs j
    join hooks.destinations d on d.name = j.destination
   where j.state = 'sending'
     and not exists (select from hooks.destination_deliveries where destination = d.name and next_at is not null)
   order by d.name
     for no key update of d
)
select destination, state, delivered, failed
  from hooks.end_replay_jobs(array(select name from over), 'finished');

-- name: cancelReplayJobs
-- Cancels a job, or all that the endpoint of a token has begun. What is being sent is sent. Empty for what has ended.
with running as materialized (
  select d.name
    from hooks.replay_jobs j
    join hooks.destinations d on d.name = j.destination
   where j.ended_at is null
     and (j.destination = :destination::text or j.token_hash = :token_hash::bytea)
   order by d.name
     for no key update of d
)
select destination, state, delivered, failed
  from hooks.end_replay_jobs(array(select name from running), 'cancelled');

-- name: pruneReplayJobs
-- Begins the removal of jobs that ended more than a week ago, and of all but the newest 100 that have ended.
with old as materialized (
  select d.name
    from hooks.destinations d
    join (select destination, ended_at, row_number() over (order by ended_at desc) as place
            from hooks.replay_jobs
           where ended_at is not null) j on j.destination = d.name
   where d.disabled_by = 'job'
     and (j.place > 100 or j.ended_at < now() - interval '7 days')
   order by d.name
     for no key update of d
)
update hooks.destinations d
   set disabled_by = 'removal'
  from old
 where d.name = old.name;
