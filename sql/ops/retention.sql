-- name: tryPruningLock
-- Only one instance prunes at a time.
select pg_try_advisory_xact_lock(7203005) as taken;

-- name: pruneLines
-- Looks at the oldest lines, and removes those of sessions whose whole escalation chain ended before the given time.
with oldest as (
  select session_id, seq
    from ops.session_lines
   order by session_id, seq
   limit :limit
), old as (
  select s.id
    from ops.sessions s
   where s.id in (select session_id from oldest)
     and not exists (select
                       from ops.sessions c
                      where (c.id = coalesce(s.chain_id, s.id) or c.chain_id = coalesce(s.chain_id, s.id))
                        and (c.ended_at is null or c.ended_at >= :before))
), removed as (
  delete from ops.session_lines
   where (session_id, seq) in (select session_id, seq from oldest)
     and session_id in (select id from old)
  returning session_id
)
select count(*)::integer as removed from removed;

-- name: pruneSessions
-- Removes escalation chains whose sessions all ended before the given time. Sessions that still have lines stay for the
-- next run: a cascade over their lines would take too long.
with old as (
  select s.id
    from ops.sessions s
   where s.chain_id is null
     and s.started_at < :before
     and not exists (select
                       from ops.sessions c
                      where (c.id = s.id or c.chain_id = s.id)
                        and (c.ended_at is null
                             or c.ended_at >= :before
                             or exists (select from ops.session_lines where session_id = c.id)))
   order by s.started_at
   limit :limit
), removed as (
  delete from ops.sessions
   where id in (select id from old)
      or chain_id in (select id from old)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneEvents
with removed as (
  delete from ops.events
   where id in (select id from ops.events where created_at < :before order by created_at limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneActions
with removed as (
  delete from ops.actions
   where id in (select id from ops.actions where at < :before order by at limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneApprovals
-- Those that are open are never removed.
with removed as (
  delete from ops.approvals
   where id in (select id
                  from ops.approvals
                 where created_at < :before
                   and status not in ('pending', 'approved', 'running')
                 order by created_at
                 limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneAlerts
with removed as (
  delete from ops.alerts
   where id in (select id from ops.alerts where last_seen < :before order by last_seen limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneCheckResults
with old as (
  select r.check_id, r.at
    from ops.checks c
   cross join lateral (
         select check_id, at from ops.check_results where check_id = c.id and at < :before order by at limit 100
         ) r
   limit :limit
), removed as (
  delete from ops.check_results r
   using old
   where r.check_id = old.check_id
     and r.at = old.at
  returning r.check_id
)
select count(*)::integer as removed from removed;

-- name: pruneCheckHours
with removed as (
  delete from ops.check_counts
   where ctid = any (array(
         select ctid from ops.check_counts where span = 'hour' and start < :before order by start limit :limit))
  returning check_id
)
select count(*)::integer as removed from removed;

-- name: pruneCheckDays
with removed as (
  delete from ops.check_counts
   where ctid = any (array(
         select ctid from ops.check_counts where span = 'day' and start < :before order by start limit :limit))
  returning check_id
)
select count(*)::integer as removed from removed;

-- name: pruneCheckPeriods
-- Those that last are never removed.
with removed as (
  delete from ops.check_periods
   where id in (select id
                  from ops.check_periods
                 where began_at < :before and ended_at < :before
                 order by began_at
                 limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneChecks
-- Checks that the inventory has not had since then, with their history.
with removed as (
  delete from ops.checks
   where id in (select id from ops.checks where removed_at < :before order by id limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneMutes
with removed as (
  delete from ops.mutes
   where id in (select id from ops.mutes where ends_at < :before and every is null order by ends_at limit :limit)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneSilences
with removed as (
  delete from ops.silences
   where id in (select id from ops.silences where ends_at < :before order by ends_at limit :limit)
  returning id
)
select count(*)::integer as removed from removed;
