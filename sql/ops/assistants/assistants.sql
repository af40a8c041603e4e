-- name: listAssistants
-- By name.
select name, may_start, created_at, last_used_at
  from ops.assistants
 order by name
 limit :limit;

-- name: findAssistant
-- By its token. Empty if no assistant has it.
select name, may_start
  from ops.assistants
 where token_hash = :token_hash;

-- name: touchAssistant
-- Records a use, unless one was recorded less than a minute ago.
update ops.assistants
   set last_used_at = :now
 where name = :name
   and (last_used_at is null or last_used_at < :now::timestamptz - interval '1 minute');

-- name: addAssistant
-- Empty if the name is taken, or there are :most.
insert into ops.assistants (name, token_hash, may_start, created_at)
select :name, :token_hash, :may_start, :now
 where (select count(*) from ops.assistants) < :most
on conflict (name) do nothing
returning name;

-- name: removeAssistant
-- Its token stops working at once. Empty if there is none of this name.
delete from ops.assistants
 where name = :name
returning name;
