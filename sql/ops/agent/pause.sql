-- name: readPause
select investigations_paused_at, investigations_paused_by, repairs_paused_at, repairs_paused_by
  from ops.settings;

-- name: holdPause
-- The same; nobody pauses or resumes anything until the transaction ends.
select investigations_paused_at, investigations_paused_by, repairs_paused_at, repairs_paused_by
  from ops.settings
   for share;

-- name: lockPause
-- The same, to be changed. What has seen the former state has ended.
select investigations_paused_at, investigations_paused_by, repairs_paused_at, repairs_paused_by
  from ops.settings
   for no key update;

-- name: writePause
-- Notifies every instance.
with saved as (
  update ops.settings
     set investigations_paused_at = :investigations_paused_at, investigations_paused_by = :investigations_paused_by,
         repairs_paused_at = :repairs_paused_at, repairs_paused_by = :repairs_paused_by
)
select pg_notify('ops_settings', '');
