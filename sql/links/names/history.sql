-- name: saveChange
insert into links.changes (link_id, at, actor, action, detail)
values (:link, :at, :actor, :action, :detail);

-- name: listChanges
-- The changes of a link before the change :before, newest first.
select id, at, actor, action, detail
  from links.changes
 where link_id = :link
   and id < :before
 order by id desc
 limit :limit;

-- name: findChange
-- Empty when the link has no such change, or not any more.
select id, at, actor, action, detail
  from links.changes
 where link_id = :link
   and id = :change;

-- name: listLaterValues
-- Each field of a link that was written after the change :change, with the value that it had before the first of these
-- writings: that is its value at the time of the change. :actions are the names of changes that write fields.
select distinct on (field.name) field.name, field.written -> 0 as value
  from links.changes c
 cross join lateral jsonb_each(c.detail) as field(name, written)
 where c.link_id = :link
   and c.id > :change
   and :actions::jsonb ? c.action
 order by field.name, c.id
 limit :limit;
