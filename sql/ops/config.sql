-- name: readSettings
select interval, tier1_model, tier2_model, tier3_model, dry_run, status_services
  from ops.settings;

-- name: lockSettings
-- The same, held until the transaction ends.
select interval, tier1_model, tier2_model, tier3_model, dry_run, status_services
  from ops.settings
   for no key update;

-- name: writeSettings
-- Null keeps what is saved. Notifies every instance.
with saved as (
  update ops.settings
     set interval = coalesce(:interval, interval), tier1_model = coalesce(:tier1_model, tier1_model),
         tier2_model = coalesce(:tier2_model, tier2_model), tier3_model = coalesce(:tier3_model, tier3_model),
         dry_run = coalesce(:dry_run, dry_run)
)
select pg_notify('ops_settings', '');

-- name: writeStatusServices
-- Notifies every instance.
with saved as (
  update ops.settings set status_services = :services
)
select pg_notify('ops_settings', '');
