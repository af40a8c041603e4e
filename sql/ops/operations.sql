-- name: listCooldowns
-- Actions by service and type, the latest first.
select service, action_type, count(*) as count, max(at) as last_action
  from ops.actions
 where at >= :since
 group by service, action_type
 order by last_action desc, service, action_type
 limit :limit;

-- name: lockAdmission
-- Serializes admission on all instances, so that no two operations count the same actions.
select pg_advisory_xact_lock(7203003);

-- name: countActions
select count(*) as count
  from ops.actions
 where service = :service
   and action_type = :action_type
   and at between :since and :until;

-- name: addAction
insert into ops.actions (session_id, service, action_type, operation, at)
values (:session, :service, :action_type, :operation, :now)
returning id;

-- name: finishAction
update ops.actions
   set outcome = :outcome
 where id = :id;

-- name: listOpenActions
-- Operations of a session that run, or that a crash left without an outcome.
select id
  from ops.actions
 where session_id = :session
   and outcome is null
 order by id
 limit :limit;

-- name: endActions
-- Sets the outcome of the operations that a crash left without one.
update ops.actions
   set outcome = :outcome
 where session_id = :session
   and outcome is null;
