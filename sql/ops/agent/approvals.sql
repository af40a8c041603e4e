-- name: addApproval
-- Waits for 30 minutes by the database's clock.
insert into ops.approvals (session_id, service, operation, argv, reason, created_at, expires_at)
values (:session, :service, :operation, :argv, :reason, clock_timestamp(), clock_timestamp() + interval '30 minutes')
returning id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
          outcome;

-- name: findOpenApproval
-- The one that waits, or that is about to run, or runs: at most one is open. Empty if none is.
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
       outcome
  from ops.approvals
 where service = :service
   and operation = :operation
   and status in ('pending', 'approved', 'running');

-- name: findApproval
-- Empty if it does not exist.
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
       outcome
  from ops.approvals
 where id = :id;

-- name: listApprovals
-- Those that wait first, the oldest of them first. Then the newest first. Each part has an index of its own.
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
       outcome
  from ((select *
           from ops.approvals
          where status = 'pending'
          order by id
          limit :offset::bigint + :limit::bigint)
        union all
        (select *
           from ops.approvals
          where status <> 'pending'
          order by id desc
          limit :offset::bigint + :limit::bigint)) a
 order by status = 'pending' desc, case when status = 'pending' then id else -id end
offset :offset
 limit :limit;

-- name: pageApprovals
-- Those that wait no longer, newest first, after the one with this time and id.
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
       outcome
  from ops.approvals
 where status <> 'pending'
   and (created_at, id) < (:at::timestamptz, :id::bigint)
 order by created_at desc, id desc
 limit :limit;

-- name: listPendingApprovals
-- Oldest first, without those whose time is over.
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
       outcome
  from ops.approvals
 where status = 'pending'
   and expires_at > clock_timestamp()
 order by id
 limit :limit;

-- name: decideApproval
-- Tells every instance. Empty unless it waits and has time left.
with decided as (
  update ops.approvals
     set status = :status, decided_at = clock_timestamp(), decided_by = :by
   where id = :id
     and status = 'pending'
     and expires_at > clock_timestamp()
  returning id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
            outcome
)
select decided.*
  from decided, pg_notify('ops_approvals', '');

-- name: expireApprovals
-- Ends those that nobody has decided, or no instance has run, in time. Each is given to one caller.
with due as (
  select id
    from ops.approvals
   where status in ('pending', 'approved')
     and expires_at <= clock_timestamp()
   order by id
   limit :limit
     for update skip locked
), expired as (
  update ops.approvals p
     set status = 'expired',
         outcome = case when decided_at is null then 'nobody decided in time'
                        else 'approved, and no server ran it in time' end
    from due
   where p.id = due.id
  returning p.*
)
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by, outcome
  from expired
 order by id
 limit :limit;

-- name: claimApproval
-- Claims the approval that was given first, for one process. Empty if none waits to be run.
update ops.approvals
   set status = 'running', holder = :holder, machine = :machine, heartbeat_at = clock_timestamp()
 where id = (select id
               from ops.approvals
              where status = 'approved'
                and expires_at > clock_timestamp()
              order by decided_at, id
              limit 1
                for update skip locked)
returning id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
          outcome, marker::text;

-- name: setApprovalAction
update ops.approvals
   set action_id = :action
 where id = :id;

-- name: endApproval
-- Empty unless it is open. An interrupted one may still say how it ended: its process was only silent.
update ops.approvals
   set status = :status, outcome = :outcome
 where id = :id
   and status in ('pending', 'approved', 'running', 'interrupted')
returning id;

-- name: renewApprovals
-- Those that this process runs are alive.
update ops.approvals
   set heartbeat_at = clock_timestamp()
 where status = 'running'
   and holder = :holder
   and machine = :machine;

-- name: listRunningApprovals
-- Who runs each, and for how long it has been silent. `open`: its action has no outcome yet.
select p.id, p.holder, p.machine, p.marker::text, p.action_id, a.id is not null and a.outcome is null as open,
       (extract(epoch from clock_timestamp() - p.heartbeat_at) * 1000)::float8 as silent_ms
  from ops.approvals p
  left join ops.actions a on a.id = p.action_id
 where p.status = 'running'
 order by p.id
 limit :limit;

-- name: interruptApproval
-- Ends one that nobody runs any more, with its action. Empty if it has ended meanwhile.
with ended as (
  update ops.approvals
     set status = 'interrupted', outcome = :outcome
   where id = :id
     and status = 'running'
     and holder = :holder
  returning id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by,
            outcome, action_id
), action as (
  update ops.actions a
     set outcome = :outcome
    from ended
   where a.id = ended.action_id
     and a.outcome is null
)
select id, status, service, operation, argv, reason, session_id, created_at, expires_at, decided_at, decided_by, outcome
  from ended;
