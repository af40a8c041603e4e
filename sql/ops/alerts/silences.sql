-- name: listSilences
-- Those that last or are still to come, the next to begin first.
select id, match, starts_at, ends_at, reason, author
  from ops.silences
 where ends_at > :now
 order by starts_at, id
 limit :limit;

-- name: addSilence
-- Empty when :most last or are still to come.
insert into ops.silences (match, starts_at, ends_at, reason, author)
select :match, :starts_at, :ends_at, :reason, :author
 where (select count(*) from ops.silences where ends_at > :now) < :most
returning id, match, starts_at, ends_at, reason, author;

-- name: endSilence
-- One that has begun ends now; one that has not is removed. Empty for an unknown id, and for one that is over.
with ended as (
  update ops.silences
     set ends_at = :now
   where id = :id
     and starts_at < :now
     and ends_at > :now
  returning match
), removed as (
  delete from ops.silences
   where id = :id
     and starts_at >= :now
  returning match
)
select match from ended
union all
select match from removed;
