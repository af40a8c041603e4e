-- name: listMutes
-- Those that last or are still to come, the next to begin first.
select id, service, check_name, starts_at, ends_at, reason, author, every, tz
  from ops.mutes
 where ends_at > :now
    or every is not null
 order by starts_at, id
 limit :limit;

-- name: listPastTimes
-- Those that come back and whose time is over.
select id, every, tz
  from ops.mutes
 where ends_at <= :now
   and every is not null
 order by id
 limit :limit;

-- name: setMuteTime
-- To the next time of one that comes back.
update ops.mutes
   set starts_at = :starts_at, ends_at = :ends_at
 where id = :id
   and every is not null;

-- name: addMute
-- Empty when :most last or are still to come.
insert into ops.mutes (service, check_name, starts_at, ends_at, reason, author, every, tz)
select :service, :check_name, :starts_at, :ends_at, :reason, :author, :every, :tz
 where (select count(*) from ops.mutes where ends_at > :now or every is not null) < :most
returning id, service, check_name, starts_at, ends_at, reason, author, every, tz;

-- name: endMute
-- One that has begun ends now; one that has not, or that comes back, is removed. Empty for an unknown id, and for one
-- that is over.
with ended as (
  update ops.mutes
     set ends_at = :now
   where id = :id
     and every is null
     and starts_at < :now
     and ends_at > :now
  returning service, check_name
), removed as (
  delete from ops.mutes
   where id = :id
     and (starts_at >= :now or every is not null)
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
