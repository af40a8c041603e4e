-- name: listActions
-- Actions by service and type, the latest first.
select service, action_type, count(*) as count, max(at) as last_action
  from ops.actions
 where at >= :since
 group by service, action_type
 order by last_action desc, service, action_type
 limit :limit;

-- name: listUses
-- For each limit: the actions since a time, and the one that must leave the window before another is admitted; null
-- while one is.
select l.position, u.count, u.last_action, b.at as blocks
  from jsonb_to_recordset(:limits::jsonb)
         as l(position integer, service text, action_type text, since timestamptz, most integer)
 cross join lateral (select count(*) as count, max(at) as last_action
                       from ops.actions
                      where service = l.service
                        and action_type = l.action_type
                        and at between l.since and :until) u
  left join lateral (select at
                       from ops.actions
                      where service = l.service
                        and action_type = l.action_type
                        and at between l.since and :until
                      order by at desc
                     offset greatest(l.most - 1, 0)
                      limit 1) b on true
 order by l.position
 limit :limit;

-- name: findRecord
-- What a session did by the record, whatever it says: tool calls, those that failed, operations that it asked for, and
-- those that ran, also after a person's approval.
select c.calls, c.errors, c.asked, a.operations
  from (select count(distinct call) as calls,
               count(distinct call) filter (where kind = 'error') as errors,
               count(distinct call) filter (where kind = 'tool'
                                              and split_part(text, ' ', 1) like '%run_operation') as asked
          from ops.session_lines
         where session_id = :session
           and call is not null) c
 cross join (select count(*) as operations
               from ops.actions
              where session_id = :session) a;

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
-- Empty unless this holder runs the session and nobody has asked it to stop. Until this transaction ends, nobody else
-- ends the session.
insert into ops.actions (session_id, service, action_type, operation, at)
select id, :service, :action_type, :operation, :now
  from ops.sessions
 where id = :session
   and holder = :holder
   and status = 'running'
   and not stop_asked
   for share
returning id;

-- name: addApprovedAction
-- Of an operation that a person has approved: no session runs it.
insert into ops.actions (session_id, service, action_type, operation, at)
values (:session, :service, :action_type, :operation, :now)
returning id;

-- name: finishAction
update ops.actions
   set outcome = :outcome
 where id = :id;

-- name: listOpenActions
-- Operations of a session that run, or that a crash left without an outcome. One that a person approved is not run by
-- the session.
select id
  from ops.actions
 where session_id = :session
   and outcome is null
   and not exists (select from ops.approvals p where p.action_id = actions.id)
 order by id
 limit :limit;

-- name: endActions
-- Sets the outcome of the operations that a crash left without one.
update ops.actions
   set outcome = :outcome
 where session_id = :session
   and outcome is null
   and not exists (select from ops.approvals p where p.action_id = actions.id);
