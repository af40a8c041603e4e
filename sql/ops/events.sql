-- name: addEvent
-- Also makes a notice, if asked to.
with added as (
  insert into ops.events (session_id, level, service, message, created_at, waits)
  values (:session, :level, :service, :message, :now, :waits)
  returning id, session_id, level, service, message, created_at
), due as (
  insert into notices.notices (service, level, message, site, path, session_id, created_at)
  select coalesce(service, 'gatehouse'), level, message, 'ops',
         case when session_id is null then '/events' else '/sessions/' || session_id end, session_id, created_at
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

-- name: pageEvents
-- Newest first, those after the event with this time and id; a filter that is null matches all.
select id, session_id, level, service, message, created_at
  from ops.events
 where (created_at, id) < (:at::timestamptz, :id::bigint)
   and (:level::text is null or level = :level)
   and (:service::text is null or service = :service)
 order by created_at desc, id desc
 limit :limit;

-- name: countEvents
-- Counts no further than the limit.
select count(*) as count
  from (select
          from ops.events
         where (:level::text is null or level = :level)
           and (:service::text is null or service = :service)
         limit :limit) found;
