-- name: addEvent
-- Also makes a notice that is due at once, if asked to.
with added as (
  insert into ops.events (session_id, level, service, message, created_at)
  values (:session, :level, :service, :message, :now)
  returning id, session_id, level, service, message, created_at
), due as (
  insert into ops.notices (event_id, created_at, next_at)
  select id, created_at, created_at
    from added
   where :notify::boolean
)
select id, session_id, level, service, message, created_at
  from added;

-- name: addEventOnce
-- Skips a message that the session already has: a retry after a lost acknowledgement must not repeat the event.
insert into ops.events (session_id, level, service, message, created_at)
select :session, :level, :service, :message, :now
 where not exists (select from ops.events where session_id = :session and message = :message);

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
