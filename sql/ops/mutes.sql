-- name: listMutes
-- Those that last or are still to come, the next to begin first.
select id, service, check_name, starts_at, ends_at, reason, author
  from ops.mutes
 where ends_at > :now
 order by starts_at, id
 limit :limit;

-- name: addMute
-- Empty when :most last or are still to come.
insert into ops.mutes (service, check_name, starts_at, ends_at, reason, author)
select :service, :check_name, :starts_at, :ends_at, :reason, :author
 where (select count(*) from ops.mutes where ends_at > :now) < :most
returning id, service, check_name, starts_at, ends_at, reason, author;

-- name: endMute
-- One that has begun ends now; one that has not is removed. Empty for an unknown id, and for one that is over.
with ended as (
  update ops.mutes
     set ends_at = :now
   where id = :id
     and starts_at < :now
     and ends_at > :now
  returning service, check_name
), removed as (
  delete from ops.mutes
   where id = :id
     and starts_at >= :now
  returning service, check_name
)
select service, check_name from ended
union all
select service, check_name from removed;

-- name: countScope
-- How many checks of the inventory a service, or a check of it, is.
select count(*)::integer as checks
  from ops.checks
 where removed_at is null
   and service = :service
   and (:check_name::text is null or name = :check_name);
