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

-- name: pruneEventsByAge
-- Removes at most :limit events received before a time and remembers the highest id; count 0 means done.
with old as (
  select id from hooks.events where received_at < :before order by received_at limit :limit for update skip locked
), removed as (
  delete from hooks.events where id in (select id from old) returning id
), marked as (
  update hooks.settings
     set pruned_through = greatest(pruned_through, (select max(id) from removed))
   where exists (select from removed)
)
select count(*)::integer as removed from removed;

-- name: pruneEventsByCount
-- Removes at most :limit of the oldest events beyond the newest :keep and remembers the highest id; 0 means done.
with surplus as (
  select id from hooks.events
   where id <= coalesce((select id from hooks.events order by id desc offset :keep limit 1), 0)
   order by id
   limit :limit
     for update skip locked
), removed as (
  delete from hooks.events where id in (select id from surplus) returning id
), marked as (
  update hooks.settings
     set pruned_through = greatest(pruned_through, (select max(id) from removed))
   where exists (select from removed)
)
select count(*)::integer as removed from removed;

-- name: pruneActivity
-- Keeps the newest minute of each provider: it tells when the provider delivered last after its events are gone.
delete from hooks.activity a
 where minute < :before
   and exists (select from hooks.activity newer where newer.provider = a.provider and newer.minute > a.minute);

-- name: pruneForwarders
-- Forgets forwarders that have neither connected nor moved since :before. The :connected ones (names) are connected
-- to this process, idle or not.
with connected as (
  update hooks.forwarders
     set updated_at = :now
   where name in (select jsonb_array_elements_text(:connected::jsonb))
)
delete from hooks.forwarders
 where updated_at < :before
   and name not in (select jsonb_array_elements_text(:connected::jsonb));
