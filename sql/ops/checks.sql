-- name: saveCheckStates
-- Gives the previous state of each check that has one.
with given as (
  select service, name, state, message, ms
    from jsonb_to_recordset(:states::jsonb) as given(service text, name text, state text, message text, ms integer)
), before as materialized (
  select c.service, c.name, c.state, c.told_event
    from ops.check_states c
    join given g on g.service = c.service and g.name = c.name
), saved as (
  insert into ops.check_states (service, name, state, since, message, ms, checked_at, session_id)
  select service, name, state, :now, message, ms, :now, :session
    from given
   order by service, name
  on conflict (service, name) do update
     set state = excluded.state, message = excluded.message, ms = excluded.ms, checked_at = excluded.checked_at,
         session_id = excluded.session_id,
         since = case when ops.check_states.state = excluded.state then ops.check_states.since else excluded.since end
)
select service, name, state, told_event
  from before;

-- name: saveNotifiedEvent
-- The event whose notice reported the failure of a check; null once its recovery is reported.
update ops.check_states
   set told_event = :event
 where service = :service
   and name = :name;

-- name: listCheckStates
-- Also of checks that the inventory no longer has.
select service, name, state, since, message, ms, checked_at, session_id
  from ops.check_states
 limit :limit;
