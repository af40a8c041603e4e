-- name: readSettings
select retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target
  from hooks.settings;

-- name: lockSettings
-- The same, held until the transaction ends.
select retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target
  from hooks.settings
   for no key update;

-- name: writeSettings
-- Writes the settings that :given has, also a target of null; others keep their value.
with changed as (
  update hooks.settings
     set retention_max_age_days = coalesce((:given::jsonb->>'retention_max_age_days')::integer, retention_max_age_days),
         retention_max_rows = coalesce((:given::jsonb->>'retention_max_rows')::integer, retention_max_rows),
         sse_retry_ms = coalesce((:given::jsonb->>'sse_retry_ms')::integer, sse_retry_ms),
         replay_default_target = case when :given::jsonb ? 'replay_default_target'
                                      then :given::jsonb->>'replay_default_target' else replay_default_target end
  returning only_row
)
select pg_notify('hooks_config', '') from changed;

-- name: nameInstallation
-- The name of this installation; :fresh becomes it at the first start. The update changes nothing: it returns the
-- present name, also if another instance has just written it.
insert into hooks.installation (name) values (:fresh)
on conflict (only_row) do update set name = hooks.installation.name
returning name;

-- name: findNewest
-- Skips the :newer newest events below :before, and gives the next one. Empty where no event is left.
select id from hooks.events where id < :before order by id desc offset :newer limit 1;

-- name: pruneEvents
-- Removes at most :limit of the events below an id, and remembers the highest one; 0 means done. They go in ascending
-- order, so that no event is left at or below the highest removed id. The scan begins there: until vacuum, the index
-- has an entry for each removed event. A locked event is being delivered again: that takes milliseconds.
with surplus as (
  select id
    from hooks.events
   where id > (select pruned_through from hooks.settings)
     and id < :below
   order by id
   limit :limit
     for update
), removed as (
  delete from hooks.events where id in (select id from surplus) returning id
), forgotten as (
  delete from hooks.repeats where event_id in (select id from surplus)
), passed as (
  delete from hooks.clock_steps where event_id <= (select max(id) from removed)
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
