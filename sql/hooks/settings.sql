-- name: readSettings
select retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target
  from hooks.settings;

-- name: writeSettings
-- A null keeps the value, except that the target becomes null when :sets_target.
with changed as (
  update hooks.settings
     set retention_max_age_days = coalesce(:retention_max_age_days, retention_max_age_days),
         retention_max_rows = coalesce(:retention_max_rows, retention_max_rows),
         sse_retry_ms = coalesce(:sse_retry_ms, sse_retry_ms),
         replay_default_target = case when :sets_target then :replay_default_target else replay_default_target end
  returning only_row
)
select pg_notify('hooks_config', '') from changed;
