-- name: addChange
-- An actor is named by what a proxy sends, and a subject by what a user types: longer ones are cut.
insert into audit.changes (actor, action, service, subject)
values (left(:actor, 300), :action, :service, left(:subject, 500));

-- name: listChanges
-- The changes of a service (null: of all) below the id :before and since a time, newest first.
select id, at, actor, action, service, subject
  from audit.changes
 where id < :before
   and (:service::text is null or service = :service)
   and at >= :since
 order by id desc
 limit :limit;

-- name: pruneChanges
-- Removes at most :limit of the lines from before a time, and of those beyond the newest :kept.
with surplus as (
  select id
    from audit.changes
   where id <= (select id from audit.changes order by id desc offset :kept limit 1)
      or at < :before
   order by id
   limit :limit
), removed as (
  delete from audit.changes where id in (select id from surplus) returning id
)
select count(*)::integer as removed from removed;
