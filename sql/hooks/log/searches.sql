-- name: listSearches
-- By name.
select id, name, query, created_at
  from hooks.searches
 order by lower(name), name
 limit :limit;

-- name: lockSearches
-- One change at a time, so that names stay unique and the bound holds.
lock table hooks.searches in share row exclusive mode;

-- name: addSearch
insert into hooks.searches (name, query)
values (:name, :query)
returning id, name, query, created_at;

-- name: renameSearch
-- Empty for an unknown id.
update hooks.searches
   set name = :name
 where id = :id
returning id, name, query, created_at;

-- name: removeSearch
-- Empty for an unknown id.
delete from hooks.searches
 where id = :id
returning name;
