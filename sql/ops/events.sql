-- name: addEvent
-- Also makes a notice that is due at once, if asked to.
with added as (
  insert into ops.events (session_id, level, service, message, created_at, waits)
  values (:session, :level, :service, :message, :now, :waits)
  returning id, session_id, level, service, message, created_at
), due as (
  insert into ops.notices (event_id, created_at, next_at)
  select id, created_at, now()
    from added
   where :notify::boolean
), counted as (
  insert into ops.event_counts (day, events)
  select (created_at at time zone 'UTC')::date, 1
    from added
  on conflict (day) do update
     set events = ops.event_counts.events + 1
)
select id, session_id, level, service, message, created_at
  from added;

-- name: addEventOnce
-- Skips a message that the session already has: a retry after a lost acknowledgement must not repeat the event.
with added as (
  insert into ops.events (session_id, level, service, message, created_at)
  select :session, :level, :service, :message, :now
   where not exists (select from ops.events where session_id = :session and message = :message)
  returning created_at
)
insert into ops.event_counts (day, events)
select (created_at at time zone 'UTC')::date, 1
  from added
on conflict (day) do update
   set events = ops.event_counts.events + 1;

-- name: listEvents
-- Newest first; a filter that is null matches all.
select id, session_id, level, service, message, created_at
  from ops.events
 where (:level::text is null or level = :level)
   and (:service::text is null or service = :service)
   and (:session::bigint is null or session_id = :session)
 order by created_at desc, id desc
offset :offset
 limit :limit;

-- name: claimNotice
-- Claims the next due notice for one attempt and schedules the next one: after 10 s, 20 s, 40 s, at most an hour.
-- One due in over an hour was scheduled by a clock that was set back since. Empty when none is due.
with due as (
  select id
    from ops.notices
   where sent_at is null
     and (next_at <= now() or next_at > now() + interval '61 minutes')
   order by next_at, id
   limit 1
   for update skip locked
), taken as (
  update ops.notices n
     set attempts = n.attempts + 1,
         next_at = now() + least(interval '1 hour', interval '10 seconds' * power(2, least(n.attempts, 9)))
    from due
   where n.id = due.id
  returning n.id, n.event_id, n.session_id, n.created_at
)
select t.id, case when t.event_id is null then 'session' else 'event' end as kind,
       coalesce(t.session_id, e.session_id) as session_id, coalesce(e.level, 'critical') as level,
       coalesce(e.service, 'gatehouse') as service, t.created_at,
       coalesce(e.message,
                (select f.message
                   from ops.events f
                  where f.session_id = t.session_id
                    and f.service = 'gatehouse'
                  order by f.id desc
                  limit 1),
                'Session ' || t.session_id || ' ' || s.status) as message
  from taken t
  left join ops.events e on e.id = t.event_id
  left join ops.sessions s on s.id = t.session_id;

-- name: countNotices
-- How many notices a session has sent, and whether one told the same words of the same service.
select (select count(*)
          from ops.events e
          join ops.notices n on n.event_id = e.id
         where e.session_id = :session) as notices,
       exists (select
                 from ops.notices n
                 join ops.events e on e.id = n.event_id
                where e.service is not distinct from :service
                  and e.message = :message) as same;

-- name: withdrawNotice
-- Only a notice that was not sent.
delete from ops.notices
 where event_id = :event
   and sent_at is null;

-- name: finishNotice
-- Null for the problem of a notice that was sent.
update ops.notices
   set sent_at = case when :problem::text is null then now() end, problem = :problem
 where id = :id;

-- name: pruneNotices
-- One that was tried and not taken stays until it is, as long as there is a receiver (`wanted`), or until its event or
-- session is removed.
delete from ops.notices
 where created_at < :before
   and (sent_at is not null or attempts = 0 or not :wanted::boolean);

-- name: countEvents
-- Counts no further than the limit.
select count(*) as count
  from (select
          from ops.events
         where (:level::text is null or level = :level)
           and (:service::text is null or service = :service)
         limit :limit) found;
